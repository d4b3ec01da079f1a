r"""Loops of spectral draws: sums of plane waves, and numbers that belong to a place.

Cosines and sines are taken by polynomials after a reduction to an eighth of the circle. A library
function is called for one number at a time; these loops do as many as a register holds. Every
number goes the same way, whichever others stand beside it: a draw does not depend on how cells are
cut into blocks, to the last bit.

Inputs come transposed, ``(d, m)``, float64, C-contiguous. The caller owns every output.
"""

from __future__ import annotations

import math

import numpy as np

from xcopula.jit.compiler import compiled

__all__ = ["add_waves", "fold", "normals", "turn"]

# Cells are worked on so many at a time: their phases stay near the processor.
_TILE = 512

# Half of pi in three parts, the first two of so few bits that their products with whole numbers up
# to 2^26 are exact: phases may be large, as rough kernels have high frequencies.
_HALF_PI = (
    float.fromhex("0x1.921fb5p+0"),
    float.fromhex("0x1.110b46p-26"),
    float.fromhex("0x1.1a62633145c07p-54"),
)
_ONE, _TWO, _THREE = _HALF_PI
_QUARTERS = 2.0 / math.pi

# The series of sine and cosine, as far as double precision sees them up to pi / 4.
_S3, _S5, _S7, _S9, _S11, _S13, _S15 = (
    (-1.0) ** k / math.factorial(2 * k + 1) for k in range(1, 8)
)
_C2, _C4, _C6, _C8, _C10, _C12, _C14, _C16 = (
    (-1.0) ** k / math.factorial(2 * k) for k in range(1, 9)
)


@compiled
def _turned(phase):
    """Return cosine and sine of a phase."""
    quarter = np.floor(phase * _QUARTERS + 0.5)
    x = ((phase - quarter * _ONE) - quarter * _TWO) - quarter * _THREE
    y = x * x
    sine = _S9 + y * (_S11 + y * (_S13 + y * _S15))
    sine = x + x * y * (_S3 + y * (_S5 + y * (_S7 + y * sine)))
    cosine = _C10 + y * (_C12 + y * (_C14 + y * _C16))
    cosine = 1.0 + y * (_C2 + y * (_C4 + y * (_C6 + y * (_C8 + y * cosine))))
    # Which quarter of the circle: 0, 1, 2 or 3.
    place = quarter - 4.0 * np.floor(0.25 * quarter)
    odd = place == 1.0 or place == 3.0
    first, second = (sine, cosine) if odd else (cosine, sine)
    first = -first if place == 1.0 or place == 2.0 else first
    second = -second if place > 1.5 else second
    return first, second


@compiled
def turn(inputs, frequencies, out):
    """Write the cosines and sines (m, 2 w) of waves (d, w) at inputs (d, m), all cosines first."""
    waves = frequencies.shape[1]
    phase = np.empty(waves)
    for a in range(inputs.shape[1]):
        for c in range(inputs.shape[0]):
            x, row = inputs[c, a], frequencies[c]
            if c == 0:
                for k in range(waves):
                    phase[k] = row[k] * x
            else:
                for k in range(waves):
                    phase[k] += row[k] * x
        first, second = out[a, :waves], out[a, waves : 2 * waves]
        for k in range(waves):
            first[k], second[k] = _turned(phase[k])


@compiled
def add_waves(inputs, frequencies, cosines, sines, out):
    """Add up waves (d, w) at inputs (d, m), with amplitudes (w,) of cosines and sines, in out."""
    phases = np.empty(_TILE)
    for start in range(0, inputs.shape[1], _TILE):
        total = out[start : start + _TILE]
        phase = phases[: total.shape[0]]
        for k in range(frequencies.shape[1]):
            for c in range(inputs.shape[0]):
                frequency, column = frequencies[c, k], inputs[c, start : start + _TILE]
                if c == 0:
                    for a in range(phase.shape[0]):
                        phase[a] = frequency * column[a]
                else:
                    for a in range(phase.shape[0]):
                        phase[a] += frequency * column[a]
            first, second = cosines[k], sines[k]
            for a in range(phase.shape[0]):
                cosine, sine = _turned(phase[a])
                total[a] += first * cosine + second * sine


@compiled
def _mixed(key):
    """Return a number whose bits depend on all bits of the key (the finaliser of SplitMix64)."""
    key = (key ^ (key >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    key = (key ^ (key >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return key ^ (key >> np.uint64(31))


@compiled
def fold(numbers, keys):
    """Mix whole numbers (k, m), uint64, into keys (m,), one after another."""
    for row in range(numbers.shape[0]):
        for a in range(keys.shape[0]):
            keys[a] = _mixed((keys[a] ^ numbers[row, a]) + np.uint64(0x9E3779B97F4A7C15))


@compiled
def normals(keys, stream, scale, out):
    """Add ``scale`` times a standard normal number to out (m,), one for each key and stream."""
    unit = 2.0**-53
    for a in range(keys.shape[0]):
        first = _mixed((keys[a] ^ stream) + np.uint64(0x9E3779B97F4A7C15))
        second = _mixed(first + np.uint64(0x9E3779B97F4A7C15))
        # Box and Muller: a radius above zero, and an angle.
        radius = math.sqrt(-2.0 * math.log((float(first >> np.uint64(11)) + 0.5) * unit))
        out[a] += scale * radius * math.cos(2.0 * math.pi * float(second >> np.uint64(11)) * unit)
