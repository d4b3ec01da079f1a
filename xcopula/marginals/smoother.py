"""Parts of the Parzen law: a kernel smoother, a table of its scores, and a Pareto tail."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr, ndtri

from xcopula.marginals.tails import Array, log_phi, stretch, unstretch

__all__ = [
    "ParetoTail",
    "ScoreTable",
    "choose_bandwidth",
    "fit_tail_shape",
    "representatives",
    "smooth",
    "tabulate",
]

_KNOTS_PER_BANDWIDTH = 8
_MAX_KNOTS = 4096
_SHAPES = np.linspace(0.0, 0.5, 51)
_SHAPE_SD = 0.3
_FACTORS = 2.0 ** -np.arange(0.0, 8.5, 0.5)
_MAX_PAIRED = 300
_NATS_PER_STEP = 1.0
# A larger sample is smoothed by so many of its quantiles.
_MOST_CENTRES = 2000
_BATCH = 200_000
# An outlier is so many times as far from the median as most values are.
_FAR = 10.0


def choose_bandwidth(sample: Array) -> float:
    """Choose a bandwidth for a sorted sample: Silverman's rule, or a fraction of it.

    The rule, 0.9 min(sd, IQR / 1.34) n^(-1/5), is far too wide for two separate clusters. So it
    competes with fractions of it down to 1/256. They are compared by their leave-one-out likelihood
    between the 5 % and 95 % points of at most 300 values, and each halving must gain two nats.
    Outliers, up to a tenth of the sample on each side, have no say.
    """
    sample = _without_outliers(sample, 0.1)
    x = sample[np.linspace(0, sample.size - 1, min(sample.size, _MAX_PAIRED)).astype(int)]
    distance = np.abs(x[:, None] - x)[(x.size // 20) : x.size - x.size // 20]
    # ties would favour a bandwidth of zero, so all equal values are left out together
    other = distance > 0.0
    floor = np.exp(log_phi((x[x.size // 20 : x.size - x.size // 20] - x.mean()) / x.std()))
    rule, gains = _silverman(x), []
    kernel = np.exp(log_phi(distance / rule) - log_phi(0.0)) * other
    for step, factor in enumerate(_FACTORS.tolist()):
        peak = np.exp(log_phi(0.0)) / (factor * rule)
        density = peak * kernel.sum(axis=1) + floor / x.std()
        gains.append(float(np.log(density).sum()) - _NATS_PER_STEP * step)
        kernel *= kernel  # factors fall by the root of two, so that each kernel is a square
    return float(_FACTORS[int(np.argmax(gains))]) * _silverman(sample)


def _without_outliers(sample: Array, share: float) -> Array:
    """Return a sorted sample without the few values on each side that are far from all others.

    A side with more of them than its share has none: they are a part of the law.
    """
    distance, reach = np.abs(sample - np.median(sample)), 0.0
    for values in (distance, np.unique(distance)):
        few = int(share * values.size)
        reach = _FAR * max(values[few], values[-1 - few])
        if reach > 0.0:
            break
    near = distance <= reach
    return sample if near.all() else sample[near]


def _silverman(x: Array) -> float:
    sd = float(x.std())
    spread = float(np.subtract(*np.quantile(x, [0.75, 0.25]))) / 1.34
    # ties may leave no interquartile range at all
    return 0.9 * (min(sd, spread) if spread > 0.1 * sd else sd) * float(np.power(x.size, -0.2))


def smooth(x: Array, sample: Array, bandwidth: float) -> tuple[Array, Array]:
    """Evaluate the smoothed distribution function and its density at x (m,).

    One pseudo-observation with a kernel 1.5 times as wide as the whole sample joins the n
    Gaussian kernels, so that the density has no hole where the sample has a gap. The sample is
    sorted; outliers, up to a twentieth on each side, do not make that kernel wider.
    """
    near = _without_outliers(sample, 0.05)
    centre, width, n = near.mean(), 1.5 * near.std(), sample.size
    cdf, density = _kernel_sums(x, sample, bandwidth)
    wide = (x - centre) / width
    cdf = (cdf + ndtr(wide)) / (n + 1)
    density = (density / bandwidth + np.exp(log_phi(wide)) / width) / (n + 1)
    return cdf, density


def representatives(sample: Array) -> Array:
    """Return a sample, or quantiles that stand for a large one."""
    if sample.size <= _MOST_CENTRES:
        return sample
    return np.asarray(np.quantile(sample, (np.arange(_MOST_CENTRES) + 0.5) / _MOST_CENTRES))


def _kernel_sums(x: Array, sample: Array, bandwidth: float) -> tuple[Array, Array]:
    """Return the sums of the distribution functions and densities of kernels about a sample."""
    centres = representatives(sample)
    cdf, density = np.empty_like(x), np.empty_like(x)
    rows = max(1, _BATCH // centres.size)
    for start in range(0, x.size, rows):
        block = slice(start, start + rows)
        u = (x[block, None] - centres) / bandwidth
        cdf[block] = ndtr(u).sum(axis=1)
        density[block] = np.exp(log_phi(u)).sum(axis=1)
    weight = sample.size / centres.size
    return weight * cdf, weight * density


@dataclass(frozen=True, eq=False)
class ScoreTable:
    """An increasing cubic Hermite interpolant z(x) through knots."""

    x: Array
    z: Array
    slope: Array

    def _cubic(self, cell: Array) -> tuple[Array, Array, Array, Array, Array]:
        width = np.diff(self.x)[cell]
        rise = np.diff(self.z)[cell]
        left, right = width * self.slope[cell], width * self.slope[cell + 1]
        return width, self.z[cell], left, 3.0 * rise - 2.0 * left - right, left + right - 2.0 * rise

    def _locate(self, knots: Array, values: Array) -> Array:
        return np.clip(np.searchsorted(knots, values, side="right") - 1, 0, knots.size - 2)

    def evaluate(self, x: Array) -> tuple[Array, Array]:
        """Evaluate z and dz/dx."""
        cell = self._locate(self.x, x)
        width, a, b, c, d = self._cubic(cell)
        t = (x - self.x[cell]) / width
        return a + t * (b + t * (c + t * d)), (b + t * (2.0 * c + 3.0 * t * d)) / width

    def curvature(self, x: Array) -> Array:
        """Evaluate the second derivative of z."""
        cell = self._locate(self.x, x)
        width, _, _, c, d = self._cubic(cell)
        return np.asarray((2.0 * c + 6.0 * d * (x - self.x[cell]) / width) / width**2)

    def invert(self, z: Array) -> Array:
        """Solve for x by Newton steps, or by bisection where a step leaves its bracket."""
        cell = self._locate(self.z, z)
        width, a, b, c, d = self._cubic(cell)
        low, high = np.zeros_like(z), np.ones_like(z)
        t = (z - a) / (b + c + d)
        for _ in range(60):
            excess = a + t * (b + t * (c + t * d)) - z
            low, high = np.where(excess <= 0.0, t, low), np.where(excess >= 0.0, t, high)
            with np.errstate(divide="ignore", invalid="ignore"):
                new = t - excess / (b + t * (2.0 * c + 3.0 * t * d))
            new = np.where((new >= low) & (new <= high), new, 0.5 * (low + high))
            step, t = np.abs(new - t), new
            if np.all(step <= 1e-9):  # Newton squares the error, so this one is at rounding
                break
        return np.asarray(self.x[cell] + width * t)


def tabulate(sample: Array, bandwidth: float, low: float, high: float) -> ScoreTable:
    """Tabulate the scores of the smoothed distribution function between two thresholds."""
    x = _place_knots(sample, bandwidth, low, high)
    cdf, density = smooth(x, sample, bandwidth)
    z = ndtri(cdf)
    # where the function is flat to rounding, a knot that does not rise above all before it goes
    rising = np.diff(np.maximum.accumulate(z), prepend=-np.inf) > 0.0
    rising[np.flatnonzero(rising)[-1]] = rising[-1]
    rising[-1] = True
    x, z, density = x[rising], np.maximum.accumulate(z)[rising], density[rising]
    slope = density / np.exp(log_phi(z))
    # Fritsch and Carlson: slopes up to three secants keep every cubic increasing
    secant = np.diff(z) / np.diff(x)
    limit = 3.0 * np.minimum(np.append(secant, np.inf), np.insert(secant, 0, np.inf))
    return ScoreTable(x, z, np.minimum(slope, limit))


def _place_knots(sample: Array, bandwidth: float, low: float, high: float) -> Array:
    """Return knots an eighth of a bandwidth apart, or where those are too many, near values."""
    count = int(np.ceil(_KNOTS_PER_BANDWIDTH * (high - low) / bandwidth)) + 1
    if count <= _MAX_KNOTS:
        return np.linspace(low, high, max(count, 16))
    body = sample[(sample >= low) & (sample <= high)]
    cells = np.unique(np.floor((body - low) / bandwidth))
    cells = np.unique(cells[:, None] + np.arange(-4.0, 5.0))
    each = min(_KNOTS_PER_BANDWIDTH, _MAX_KNOTS // 2 // cells.size)
    if each == 0:
        return np.linspace(low, high, _MAX_KNOTS)
    near = low + bandwidth * (cells[:, None] + np.arange(each) / each).ravel()
    near = near[(near > low) & (near < high)]
    x = np.sort(np.concatenate([near, np.linspace(low, high, _MAX_KNOTS // 2)]))
    x = x[np.diff(x, prepend=-np.inf) > 0.01 * bandwidth]
    x[-1] = high
    return np.asarray(x)


@dataclass(frozen=True)
class ParetoTail:
    r"""A generalised Pareto tail of mass p at distance e past a threshold.

    .. math:: P(E > e) = p \, (1 + \xi e / \sigma)^{-1/\xi}
    """

    threshold: float
    probability: float
    scale: float
    shape: float

    def log_mass(self, e: Array) -> Array:
        """Evaluate the log probability past the distance e."""
        return np.asarray(np.log(self.probability) - stretch(e / self.scale, self.shape))

    def log_density(self, e: Array) -> Array:
        """Evaluate the log density at the distance e."""
        g = stretch(e / self.scale, self.shape)
        return np.asarray(np.log(self.probability / self.scale) - (1.0 + self.shape) * g)

    def log_density_slope(self, e: Array) -> Array:
        """Evaluate the derivative of :meth:`log_density`."""
        return np.asarray(-(1.0 + self.shape) / (self.scale + self.shape * e))

    def distance(self, log_mass: Array) -> Array:
        """Invert :meth:`log_mass`."""
        return self.scale * unstretch(np.log(self.probability) - log_mass, self.shape)


def fit_tail_shape(excesses: Array, scale: float) -> float:
    """Choose the shape in [0, 0.5] that maximises the penalised likelihood at a given scale.

    Continuity of the density at the threshold fixes the scale. Negative shapes are left out on
    purpose: with them the support would end just past the largest value of the sample.
    """
    likelihood = [
        -(1.0 + shape) * stretch(excesses / scale, shape).sum() - 0.5 * (shape / _SHAPE_SD) ** 2
        for shape in _SHAPES.tolist()
    ]
    return float(_SHAPES[int(np.argmax(likelihood))])
