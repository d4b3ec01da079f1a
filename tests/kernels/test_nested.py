"""A kernel for each nested structure."""

from __future__ import annotations

import numpy as np
import pytest
import reference

from xcopula.kernels import KERNELS, Nested, resolve_kernels
from xcopula.kernels.covariance import Covariance, InputGroup
from xcopula.kernels.nested import check_count, family, simplest

PLANE = (InputGroup(2),)
SE, ROUGH, MIDDLE = (KERNELS[k] for k in ("se", "matern12", "matern32"))


class TestResolving:
    def test_a_list_has_a_kernel_for_each_structure(self):
        """By name or as objects; the name of all shows them in order."""
        found = resolve_kernels(["matern32", ROUGH])
        assert found == Nested((MIDDLE, ROUGH))
        assert found.name == "matern32 + matern12"
        assert resolve_kernels(found) is found
        assert resolve_kernels("se") is SE

    @pytest.mark.parametrize("given", [[], ["matern32", "auto"], ("auto",)])
    def test_what_a_list_cannot_be(self, given):
        """Nothing, or partly open."""
        with pytest.raises(
            ValueError, match=r"A list has the kernel of each nested structure, by name, found \["
        ):
            resolve_kernels(given)

    def test_unknown_names(self):
        """As of one kernel; lists of lists are none."""
        with pytest.raises(ValueError, match="Unknown kernel 'cubic'"):
            resolve_kernels(["se", "cubic"])
        with pytest.raises(ValueError, match=r"Unknown kernel \['se'\]"):
            resolve_kernels([["se"], "se"])

    def test_one_for_all_is_that_one(self):
        """So that models compare equal, and share what they are told."""
        assert simplest(Nested((SE, SE))) is SE
        assert simplest(Nested((SE, ROUGH))) == Nested((SE, ROUGH))
        assert simplest(SE) is SE


class TestFamilies:
    def test_of_each_structure(self):
        """One kernel stands for all of them."""
        assert [family(SE, q) for q in range(3)] == [SE, SE, SE]
        assert [family(Nested((SE, ROUGH)), q) for q in range(2)] == [SE, ROUGH]
        assert Covariance((SE, MIDDLE), PLANE, structures=2).families == ((SE, MIDDLE),)
        covariance = Covariance((Nested((SE, ROUGH)), MIDDLE), PLANE, structures=2)
        assert covariance.families == ((SE, MIDDLE), (ROUGH, MIDDLE))

    @pytest.mark.parametrize("structures", [1, 3])
    def test_as_many_as_structures(self, structures):
        """The number of both is said, and what to give."""
        with pytest.raises(
            ValueError,
            match=rf"`structures` must be the number of kernels in a list, found "
            rf"structures={structures} and 2 kernels \(se \+ matern12\)\. Give structures=2",
        ):
            Covariance((Nested((SE, ROUGH)),), PLANE, structures=structures)
        check_count(SE, structures)

    def test_shared_kernels_are_the_same_in_every_structure(self):
        """A list for one task, and another for the next, need a convolution."""
        with pytest.raises(ValueError, match=r"needs one kernel for all tasks, .*'se \+ matern12'"):
            Covariance((Nested((SE, ROUGH)), Nested((ROUGH, SE))), PLANE, "lmc", 2)


@pytest.mark.parametrize("coupling", ["convolution", "lmc"])
@pytest.mark.parametrize("name", KERNELS)
def test_the_same_in_each_is_that_one(name, coupling):
    """Tables, task matrices and the gradient are the same to the last bit."""
    kernel, groups = KERNELS[name], (InputGroup(2), InputGroup(1))
    listed, plain = (
        Covariance((k,) * 2, groups, coupling, 2) for k in (Nested((kernel, kernel)), kernel)
    )
    theta = reference.random_theta(plain, np.random.default_rng(0))
    for a, b in zip(listed.state(theta), plain.state(theta), strict=True):
        np.testing.assert_array_equal(a, b)


def test_the_order_of_structures_is_a_matter_of_names():
    """Structures exchanged with all their parameters are the same covariance."""
    one, two = (Covariance((Nested(k),), PLANE, structures=2) for k in ((SE, ROUGH), (ROUGH, SE)))
    rng = np.random.default_rng(1)
    theta = reference.random_theta(one, rng)
    other = theta.copy()
    for name in ("length", "logit"):
        two.part(other, name)[:] = one.part(theta, name)[::-1]
    inputs = [rng.uniform(size=(6, 2))]
    matrices = [reference.covariance_matrix(c, t, inputs) for c, t in ((one, theta), (two, other))]
    np.testing.assert_allclose(*matrices, rtol=0, atol=1e-14)
    assert np.abs(matrices[0] - reference.covariance_matrix(two, theta, inputs)).max() > 0.01
