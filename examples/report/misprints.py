"""Check the misprints of the report, one after the other, with numbers.

Run as ``python examples/report/misprints.py``. Each check compares what is printed with what it has
to be, prints one line, and fails if either is not as docs/report.md says.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

from common import read_arguments, write_text

# isort: split
import numpy as np
from numpy.typing import NDArray
from scipy.special import erf, ndtr, ndtri

from xcopula.fitting.alone import starting_point
from xcopula.kernels import resolve_kernel
from xcopula.kernels.convolution import cross_profile
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.marginals import resolve as resolve_marginal
from xcopula.process import Process, Sample
from xcopula.solvers import Exact

FloatArray = NDArray[np.float64]


def cross_kernel(r: FloatArray, l_se: float, l_m: float, last_sign: float = -1.0) -> FloatArray:
    """Return the report's cross-kernel of a squared exponential and a Matern 3/2 kernel.

    ``last_sign`` is the sign of the last term's exponent: the report prints +1.
    """
    a, scale = np.sqrt(3.0) / l_m, 0.5 * np.sqrt(3.0) * l_se / l_m
    bracket = (
        2.0 * np.cosh(a * r)
        - np.exp(a * r) * erf(scale + r / l_se)
        - np.exp(last_sign * a * r) * erf(scale - r / l_se)
    )
    return np.sqrt(scale) * (0.5 * np.pi) ** 0.25 * np.exp(scale**2) * bracket


def cross_by_spectrum(r: FloatArray, l_se: float, l_m: float, halved: bool) -> FloatArray:
    """Integrate the root of both spectra, with exp(-r^2 / 2 l^2) if halved or exp(-r^2 / l^2)."""
    k = np.linspace(-40.0, 40.0, 16001) / l_se
    width = l_se if halved else l_se / np.sqrt(2.0)
    a = np.sqrt(3.0) / l_m
    smooth = np.sqrt(2.0 * np.pi) * width * np.exp(-0.5 * (width * k) ** 2)
    rough = 4.0 * a**3 / (a**2 + k**2) ** 2
    waves = np.cos(np.outer(r, k))
    return np.trapezoid(np.sqrt(smooth * rough) * waves, k, axis=1) / (2.0 * np.pi)


def check_squared_exponential() -> str:
    """The cross-kernel belongs to exp(-r^2 / 2 l^2)."""
    r = np.linspace(0.0, 3.0, 31)
    printed = cross_kernel(r, 0.7, 1.1)
    halved, plain = (np.abs(printed - cross_by_spectrum(r, 0.7, 1.1, h)).max() for h in (True, 0))
    assert halved < 1e-10 < 0.01 < plain
    return f"off the spectral integral by {halved:.0e} with exp(-r²/2l²), {plain:.2f} as printed"


def check_last_exponent() -> str:
    """The last term's exponent is negative."""
    r = np.array([5.0])
    right, printed = (float(cross_kernel(r, 0.7, 1.1, sign)[0]) for sign in (-1.0, 1.0))
    truth = float(cross_by_spectrum(r, 0.7, 1.1, True)[0])
    assert abs(right - truth) < 1e-9
    assert printed > 1.0
    return f"the correlation at r = 5 is {right:.4f} with a minus, {printed:.0f} as printed"


def check_distance() -> str:
    """A Matern kernel of the squared distance is not positive definite."""
    x = np.linspace(0.0, 3.0, 60)
    distance = np.abs(x[:, None] - x[None])

    def smallest(r: FloatArray) -> float:
        return float(np.linalg.eigvalsh((1.0 + np.sqrt(3.0) * r) * np.exp(-np.sqrt(3.0) * r))[0])

    right, printed = smallest(distance), smallest(distance**2)
    assert right > 0.0
    assert printed < -0.1
    return f"the smallest eigenvalue is {right:.1e} with a distance, {printed:.2f} with its square"


def check_determinant() -> str:
    """The Gaussian density has the root of the determinant."""
    covariance = np.array([[0.5, 0.2], [0.2, 0.4]])
    grid = np.linspace(-6.0, 6.0, 401)
    points = np.stack(np.meshgrid(grid, grid), axis=-1)
    form = np.einsum("...i,ij,...j", points, np.linalg.inv(covariance), points)
    cell, size = (grid[1] - grid[0]) ** 2, np.linalg.det(covariance)
    total = float(np.exp(-0.5 * form).sum() * cell / (2.0 * np.pi))
    right, printed = total / np.sqrt(size), total / size
    assert abs(right - 1.0) < 1e-9
    assert abs(printed - size**-0.5) < 1e-9
    return f"the density integrates to {right:.6f} with |K|^(1/2), to {printed:.3f} as printed"


def check_quantile() -> str:
    """The latent quantile takes a standard deviation."""
    law = resolve_marginal("lognormal").fit(np.exp(np.random.default_rng(0).normal(size=200)))
    mean, variance, level = 0.4, 0.09, 0.95

    def reached(scale: float) -> float:
        """Return the probability of a value below the quantile that this scale gives."""
        quantile = law.from_normal(np.array([mean + scale * ndtri(level)]))
        return float(ndtr((law.to_normal(quantile)[0] - mean) / np.sqrt(variance)))

    right, printed = reached(np.sqrt(variance)), reached(variance)
    assert abs(right - level) < 1e-9
    assert printed < 0.75
    return (
        f"Q(0.95) is exceeded by {1 - right:.0%} with the deviation, {1 - printed:.0%} as printed"
    )


def check_diagonal_factors() -> str:
    """The product with the diag() factors has a precision with negative eigenvalues."""
    single, pairs, _ = _three_tasks(shared_error=0.0)
    inverse = np.linalg.inv

    def without_margins(covariance: FloatArray) -> FloatArray:
        return inverse(covariance) - np.diag(1.0 / np.diag(covariance))

    count = len(pairs) - 1
    printed = sum(map(without_margins, pairs)) - count * without_margins(single)
    theorem = sum(map(inverse, pairs)) - count * inverse(single)
    lowest, least = (float(np.linalg.eigvalsh(p)[0]) for p in (printed, theorem))
    assert lowest < -0.1
    assert least > 0.0
    return (
        f"the smallest eigenvalue of the precision is {lowest:.2f} as printed, {least:.2f} without"
    )


def check_conditional_margins() -> str:
    """A conditional copula density divides by the margins before the data, not after."""
    law = resolve_marginal("normal").fit(np.random.default_rng(0).normal(size=200))
    y = np.linspace(-8.0, 8.0, 4001)
    w, density = law.to_normal(y), np.exp(law.log_density(y))
    mean, std = 1.2, 0.4

    def normal(z: FloatArray, centre: float, scale: float) -> FloatArray:
        return np.exp(-0.5 * ((z - centre) / scale) ** 2) / scale

    step = y[1] - y[0]
    ratios = [normal(w, mean, std) / normal(w, *margin) for margin in ((0.0, 1.0), (mean, std))]
    right, printed = (ratio * density for ratio in ratios)
    assert abs(right.sum() * step - 1.0) < 1e-6
    np.testing.assert_allclose(printed, density)
    centres = [float((y * p).sum() * step) for p in (right, printed)]
    prior = float((y * density).sum() * step)
    return f"mean {prior:.2f} before the data, {centres[0]:.2f} after; as printed {centres[1]:.2f}"


def check_dimension() -> str:
    """The one-dimensional cross-kernel of a distance in the plane is not positive definite."""
    rng = np.random.default_rng(0)
    sites = rng.random((120, 2))
    r = np.linalg.norm(sites[:, None] - sites[None], axis=-1)
    l_se, l_m = 0.4, 0.2
    se, matern = resolve_kernel("se"), resolve_kernel("matern32")
    flat = cross_kernel(r, l_se, l_m)
    plane = cross_profile(se, matern, l_se, l_m, 2, r.reshape(-1)).value.reshape(r.shape)
    own = [
        np.exp(-0.5 * (r / l_se) ** 2),
        (1.0 + np.sqrt(3.0) * r / l_m) * np.exp(-np.sqrt(3.0) * r / l_m),
    ]

    def smallest(cross: FloatArray) -> float:
        return float(np.linalg.eigvalsh(np.block([[own[0], cross], [cross, own[1]]]))[0])

    printed, right = smallest(flat), smallest(plane)
    assert printed < -0.1
    assert right > -1e-8
    return f"the smallest eigenvalue in the plane is {printed:.1f} for D = 1, {right:.0e} for D = 2"


def check_theorem() -> str:
    """The theorem is exact under its assumption, and too sure of itself without it."""
    results = []
    for shared_error in (0.0, 0.9):
        single, pairs, full = _three_tasks(shared_error)
        precision = sum(map(np.linalg.inv, pairs)) - (len(pairs) - 1) * np.linalg.inv(single)
        combined = np.linalg.inv(precision)
        results.append(float(np.mean(np.diag(combined) / np.diag(full))))
    assert abs(results[0] - 1.0) < 1e-9
    assert results[1] < 0.9
    return (
        f"claimed over true variance: {results[0]:.6f} with independent errors of the secondaries, "
        f"{results[1]:.2f} with a common one"
    )


def _three_tasks(shared_error: float) -> tuple[FloatArray, list[FloatArray], FloatArray]:
    """Return covariances of a primary at six query points: alone, with each secondary, with both.

    Secondaries see the primary at its own sites and at the query points, with errors of variance
    0.3 of which a share is common to both.
    """
    x = np.linspace(0.0, 1.0, 14)
    query = np.zeros(14, bool)
    query[[2, 4, 6, 8, 10, 12]] = True
    r = np.sqrt(3.0) * np.abs(x[:, None] - x[None]) / 0.15
    both = np.array([0.0, 1.0, 1.0])
    errors = (1.0 - shared_error) * np.diag(both) + shared_error * np.outer(both, both)
    joint = np.kron(np.ones((3, 3)), (1.0 + r) * np.exp(-r)) + 0.3 * np.kron(errors, np.eye(14))
    seen = [~query, np.ones(14, bool), np.ones(14, bool)]

    def posterior(tasks: tuple[int, ...]) -> FloatArray:
        data = np.concatenate([14 * t + np.flatnonzero(seen[t]) for t in tasks])
        wanted = np.flatnonzero(query)
        noise = 1e-9 * np.eye(data.size)
        gain = np.linalg.solve(joint[np.ix_(data, data)] + noise, joint[np.ix_(data, wanted)])
        return joint[np.ix_(wanted, wanted)] - joint[np.ix_(wanted, data)] @ gain

    return posterior((0,)), [posterior((0, 1)), posterior((0, 2))], posterior((0, 1, 2))


def check_warped() -> str:
    """The copula process is the warped process; with normal laws it is the Gaussian process."""
    rng = np.random.default_rng(1)
    inputs, values = rng.random((40, 2)), np.exp(rng.normal(size=40))
    covariance = Covariance((resolve_kernel("matern32"),), (InputGroup(2),))
    gaps = []
    for name in ("lognormal", "normal"):
        law = resolve_marginal(name).fit(values)
        process, sample = Process(covariance, (law,)), Sample.of([inputs], [values])
        theta = process.join(starting_point(covariance))
        ours = -Exact().objective(process, sample, None, theta)[0]
        factor = np.tril(Exact().condition(process, sample, None, theta).factor)
        gaps.append(abs(ours - _warped_density(law, values, factor)))
    assert max(gaps) < 1e-4
    return f"log-likelihoods differ by {max(gaps):.0e}"


def _warped_density(law: object, values: FloatArray, factor: FloatArray) -> float:
    """Return log N(g(y); 0, K) + log g'(y), the slope of the warping by differences."""
    step = 1e-5 * values
    w = law.to_normal(values)
    slope = (law.to_normal(values + step) - law.to_normal(values - step)) / (2.0 * step)
    white = np.linalg.solve(factor, w)
    determinant = np.log(np.diag(factor)).sum()
    gaussian = -0.5 * white @ white - determinant - 0.5 * w.size * np.log(2.0 * np.pi)
    return float(gaussian + np.log(slope).sum())


CHECKS: dict[str, Callable[[], str]] = {
    "squared exponential": check_squared_exponential,
    "last exponent": check_last_exponent,
    "distance": check_distance,
    "determinant": check_determinant,
    "quantile": check_quantile,
    "diag() factors": check_diagonal_factors,
    "conditional density": check_conditional_margins,
    "dimension": check_dimension,
    "theorem": check_theorem,
    "warped process": check_warped,
}


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the checks; all are quick."""
    options = read_arguments(__doc__, arguments)
    lines = [f"{name:20} {check()}" for name, check in CHECKS.items()]
    write_text(options.output / "misprints.txt", "\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
