"""What ops of PyTorch compute, compiled by Tenon: each beside PyTorch itself, family by family."""

import math

import pytest

import tenon

torch = pytest.importorskip("torch")
aten = torch.ops.aten
F = torch.nn.functional


class Ops(torch.nn.Module):
    def __init__(self, ops):
        super().__init__()
        self.ops = ops

    def forward(self, *args):
        return {name: op(*args) for name, op in self.ops.items()}


def compare(ops, *args, **tolerance):
    module = Ops(ops)
    want = module(*args)
    got = tenon.compile(module, args)(*args)
    for name in ops:
        for one, other in zip(torch.utils._pytree.tree_leaves(got[name]), torch.utils._pytree.tree_leaves(want[name])):
            torch.testing.assert_close(
                one, other, equal_nan=True, check_stride=False, msg=lambda text, name=name: f"{name}: {text}", **tolerance
            )


def numbers(*shape, low=-2.0, high=2.0, dtype=torch.float32):
    generator = torch.Generator().manual_seed(sum(shape))
    return (torch.rand(*shape, generator=generator, dtype=torch.float64) * (high - low) + low).to(dtype)


FLOATS = [torch.float32, torch.float64, torch.bfloat16]

SPECIAL = {
    "digamma": torch.digamma,
    "erfcx": torch.special.erfcx,
    "i0e": torch.special.i0e,
    "i1e": torch.special.i1e,
    "lgamma": torch.lgamma,
    "log_ndtr": torch.special.log_ndtr,
    "polygamma": lambda x: torch.polygamma(2, x),
}


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_special_functions(dtype):
    ends = torch.tensor([math.inf, math.nan, 0.0, 1.0, 2.0], dtype=dtype)
    x = torch.cat([numbers(60, low=-9, high=19, dtype=dtype), ends])
    tolerance = {"rtol": 2e-5, "atol": 2e-5} if dtype == torch.float32 else {"rtol": 1e-9, "atol": 1e-9}
    compare({name: op for name, op in SPECIAL.items() if name != "polygamma"}, x, **tolerance)
    compare({"polygamma": SPECIAL["polygamma"]}, x[torch.isfinite(x)], **tolerance)  # of inf it is NaN there
    compare({"i0": torch.special.i0, "i1": torch.special.i1}, x[torch.isfinite(x)], **tolerance)  # of inf they are NaN there
    compare({"erfinv": torch.erfinv}, torch.cat([numbers(40, low=-1, high=1, dtype=dtype), ends]), **tolerance)
    q = numbers(5, low=0.5, high=30, dtype=dtype)
    compare({"zeta": torch.special.zeta}, numbers(5, low=1.5, high=6, dtype=dtype), q, **tolerance)


def test_bessel_functions_and_polynomials():
    x = numbers(30, low=0.1, high=9)
    names = ["bessel_j0", "bessel_j1", "bessel_y0", "bessel_y1", "modified_bessel_k0", "modified_bessel_k1"]
    names += ["scaled_modified_bessel_k0", "scaled_modified_bessel_k1", "spherical_bessel_j0"]
    compare({name: getattr(torch.special, name) for name in names}, x, rtol=2e-5, atol=2e-5)
    kinds = ["chebyshev_polynomial_" + each for each in "tuvw"]
    kinds += ["shifted_" + each for each in kinds]
    kinds += ["hermite_polynomial_h", "hermite_polynomial_he", "laguerre_polynomial_l", "legendre_polynomial_p"]
    degrees = torch.arange(5.0)
    compare({kind: getattr(torch.special, kind) for kind in kinds}, numbers(4, 1, low=-1, high=1), degrees, rtol=2e-5, atol=2e-5)


@pytest.mark.parametrize("dtype", FLOATS)
def test_parts_of_floats(dtype):
    some = torch.tensor([0.0, -0.0, 1.0, -1.5, 3.0, math.inf, -math.inf, math.nan, 1e-38, -65504.0, 7e-5], dtype=dtype)
    a, b = (each.reshape(-1) for each in torch.meshgrid(some, some, indexing="ij"))
    ops = {
        "copysign": torch.copysign,
        "fmax": torch.fmax,
        "fmin": torch.fmin,
        "nextafter": torch.nextafter,
        "signbit": lambda a, b: torch.signbit(a),
        "angle": lambda a, b: torch.angle(a),
    }
    if dtype == torch.bfloat16:
        del ops["angle"]  # which PyTorch lacks for it
    compare(ops, a, b)
    compare({"frexp": lambda x: tuple(torch.frexp(x))}, some[torch.isfinite(some)])
    x, y = numbers(20, dtype=dtype), numbers(20, low=-5, dtype=dtype)
    compare({"hypot": torch.hypot, "ldexp": torch.ldexp}, x, y)


@pytest.mark.parametrize("dtype", [torch.int64, torch.int32, torch.uint8])
def test_divisors(dtype):
    a, b = torch.tensor([12, 0, 7, 100, 0], dtype=dtype), torch.tensor([18, 5, 0, 75, 0], dtype=dtype)
    compare({"gcd": torch.gcd, "lcm": torch.lcm}, a, b)


RANKS = {
    "median": lambda x: torch.median(x),
    "median.dim": lambda x: torch.median(x, 1)[0],
    "nanmedian": lambda x: torch.nanmedian(x, 0, keepdim=True)[0],
    "kthvalue": lambda x: torch.kthvalue(x, 2, 0)[0],
    "mode": lambda x: tuple(torch.mode(x, 1)),
    "cummax": lambda x: tuple(torch.cummax(x, 1)),
    "cummin": lambda x: tuple(torch.cummin(x, 0)),
    "histc": lambda x: torch.histc(x, 5, -1, 1),
    "histc of all": lambda x: torch.histc(x, 4),
    "sort": lambda x: tuple(torch.sort(x, dim=1, stable=True)),
}


def test_ranks():
    compare(RANKS | {"logcumsumexp": lambda x: torch.logcumsumexp(x * 100, 1)}, numbers(5, 7))
    spoiled = numbers(5, 7)
    spoiled[1, 2] = math.nan
    compare({name: RANKS[name] for name in ("median", "median.dim", "nanmedian", "cummax", "cummin")}, spoiled)
    compare({"median": torch.median, "cummax": lambda x: tuple(torch.cummax(x, 0))}, torch.tensor(3.0))
    lines, x = torch.sort(numbers(3, 6), 1)[0], numbers(3, 4)
    compare({"searchsorted": lambda x, lines: torch.searchsorted(lines, x, right=True)}, x, lines)


REDUCTIONS = ["sum", "prod", "mean", "amax", "amin"]


@pytest.mark.parametrize("dtype", [torch.float32, torch.int64])
@pytest.mark.parametrize("include", [True, False])
def test_reductions_into_places(dtype, include):
    x, source = (numbers(4, 5) * 4).to(dtype), (numbers(3, 5) * 4).to(dtype)
    index = torch.tensor([[0, 1, 1, 0, 2], [0, 1, 0, 3, 2], [0, 0, 1, 0, 2]])
    rows = torch.tensor([2, 0, 2])
    ops = {}
    for reduce in REDUCTIONS:
        ops[f"scatter_reduce {reduce}"] = lambda x, s, reduce=reduce: x.scatter_reduce(
            0, index, s, reduce, include_self=include
        )
        if reduce != "sum":
            ops[f"index_reduce {reduce}"] = lambda x, s, reduce=reduce: x.index_reduce(
                0, rows, s, reduce, include_self=include
            )
    compare(ops, x, source)


def test_scalars_along_an_axis():
    one, index = torch.tensor(2.5), torch.tensor(0)
    ops = {
        "gather": lambda x: torch.gather(x, 0, index),
        "index_select": lambda x: torch.index_select(x, 0, index),
        "index_add": lambda x: torch.index_add(x, 0, index, x * 2),
        "index_fill": lambda x: torch.index_fill(x, 0, index, 7),
        "scatter": lambda x: torch.scatter(x, 0, index, x * 3),
        "max": lambda x: tuple(torch.max(x, 0)),
        "unfold": lambda x: x.unfold(0, 1, 1),
    }
    compare(ops, one)


PLACES = {
    "as_strided": lambda x: torch.as_strided(x, (2, 3), (1, 4), 1),
    "as_strided of a view": lambda x: torch.as_strided(x.t().contiguous(), (3, 2), (2, 1)),
    "as_strided_scatter": lambda x: torch.as_strided_scatter(x, torch.ones(2, 2), (2, 2), (1, 6), 1),
    "diagonal_scatter": lambda x: torch.diagonal_scatter(x, torch.ones(4), 1),
    "put": lambda x: x.put(torch.tensor([0, -1, 3, 3]), torch.tensor([1.0, 2.0, 3.0, 4.0]), accumulate=True),
    "nonzero_static": lambda x: torch.nonzero_static(x > 1, size=30, fill_value=-7),
    "triu_indices": lambda x: torch.triu_indices(4, 5, 1) + x.sum().long(),
    "view_copy": lambda x: torch.view_copy(x, (5, 4)),
    "unbind_copy": lambda x: torch.unbind_copy(x, 1)[2],
    "linspace": lambda x: torch.linspace(x[0, 0], x[1, 1], 7),
    "round": lambda x: (torch.round(x, decimals=1), torch.round(x * 100, decimals=-1)),
    "dist": lambda x: torch.dist(x, x + 1, 3),
    "pdist": lambda x: F.pdist(x),
    "bilinear": lambda x: F.bilinear(x, x * 2, torch.ones(3, 5, 5)),
    "addbmm": lambda x: torch.addbmm(x[:, :4], x[:, :4].expand(2, 4, 4), x[:, :4].expand(2, 4, 4), beta=0.5),
}


JOINS = {
    "atleast_3d": lambda x: torch.atleast_3d(x[0]),
    "column_stack": lambda x: torch.column_stack((x[:, 0], x)),
    "hstack": lambda x: (torch.hstack((x[0], x[1])), torch.hstack((x, x))),
    "vstack": lambda x: torch.vstack((x[0], x)),
    "dstack": lambda x: torch.dstack((x, x)),
    "fliplr": torch.fliplr,
    "flipud": torch.flipud,
    "addr": lambda x: torch.addr(x, x[:, 0], x[0], beta=0.5, alpha=2),
    "vdot": lambda x: torch.vdot(x[0], x[1]),
    "unique": lambda x: torch.unique(x.round(), return_inverse=True, return_counts=True),
    "mvlgamma": lambda x: torch.mvlgamma(x.abs() + 2, 3),
    "logspace": lambda x: torch.logspace(-1, 2, 5) + x[0],
}


def test_joins():
    compare(JOINS, numbers(4, 5), rtol=1e-5, atol=1e-5)


def test_places():
    compare(PLACES, numbers(4, 5), rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses_of_models(dtype):
    """As modules are exported, without any decomposition."""
    x, target, weight = numbers(6, 4, dtype=dtype), numbers(6, 4, low=0, high=1, dtype=dtype), numbers(4, low=0.5, dtype=dtype)
    classes = torch.tensor([0, 2, 1, 3, 1, 0])
    ops = {
        "cross_entropy": lambda x, t, w: F.cross_entropy(x, classes, w, ignore_index=1),
        "cross_entropy of probabilities": lambda x, t, w: F.cross_entropy(x, t, w, label_smoothing=0.1),
        "cross_entropy none": lambda x, t, w: F.cross_entropy(x, classes, reduction="none"),
        "nll_loss": lambda x, t, w: F.nll_loss(x, classes, w),
        "with logits": lambda x, t, w: F.binary_cross_entropy_with_logits(x, t, w, pos_weight=w * 2),
        "l1_loss": lambda x, t, w: F.l1_loss(x, t),
        "kl_div": lambda x, t, w: F.kl_div(x, t, reduction="batchmean"),
        "kl_div of logarithms": lambda x, t, w: F.kl_div(x, t, reduction="sum", log_target=True),
        "cosine_similarity": lambda x, t, w: F.cosine_similarity(x, t),
        "pairwise_distance": lambda x, t, w: F.pairwise_distance(x, t),
        "xlogy": lambda x, t, w: torch.xlogy(t, t),
        "float_power": lambda x, t, w: torch.float_power(t, 2),
        "isclose": lambda x, t, w: torch.isclose(x, x + 1e-7 * t),
        "nansum": lambda x, t, w: torch.nansum(torch.log(x), 1),
        "nanmean": lambda x, t, w: torch.nanmean(torch.log(x)),
        "inner": lambda x, t, w: torch.inner(x, t),
        "aminmax": lambda x, t, w: tuple(torch.aminmax(x)),
    }
    compare(ops, x, target, weight, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_losses(dtype):
    x, target = numbers(6, 4, low=0.1, high=0.9, dtype=dtype), numbers(6, 4, low=0, high=1, dtype=dtype)
    dy = torch.tensor(0.7, dtype=dtype)
    ops = {}
    for reduction in (0, 1, 2):
        seed = torch.full((6, 4), 0.3, dtype=dtype) if reduction == 0 else dy
        for name, more in {"mse_loss": (), "huber_loss": (0.2,), "smooth_l1_loss": (0.3,)}.items():
            ops[f"{name} {reduction}"] = lambda x, t, n=name, r=reduction, m=more: getattr(aten, n)(x, t, r, *m)
            ops[f"{name}_backward {reduction}"] = lambda x, t, n=name, r=reduction, m=more, s=seed: getattr(
                aten, n + "_backward"
            )(s, x, t, r, *m)
        ops[f"binary_cross_entropy {reduction}"] = lambda x, t, r=reduction: aten.binary_cross_entropy(x, t, None, r)
        ops[f"binary_cross_entropy_backward {reduction}"] = (
            lambda x, t, r=reduction, s=seed: aten.binary_cross_entropy_backward(s, x, t, None, r)
        )
    compare(ops, x, target, rtol=1e-5, atol=1e-5)
    logits, classes, weight = numbers(5, 3, dtype=dtype), torch.tensor([0, 2, 1, 2, 1]), numbers(3, low=0.5, dtype=dtype)
    losses = {}
    for reduction in (0, 1, 2):
        losses[f"nll_loss {reduction}"] = lambda x, w, r=reduction: aten.nll_loss_forward(x, classes, w, r, 1)
        losses[f"nll_loss_backward {reduction}"] = lambda x, w, r=reduction: aten.nll_loss_backward(
            torch.ones(5, dtype=dtype) if r == 0 else dy, x, classes, w, r, 1, aten.nll_loss_forward(x, classes, w, r, 1)[1]
        )
    compare(losses, logits, weight, rtol=1e-5, atol=1e-5)


ACTIVATIONS = {
    "elu": lambda dy, x: aten.elu_backward(dy, 1.2, 0.9, 0.8, False, x),
    "elu by result": lambda dy, x: aten.elu_backward(dy, 1.2, 0.9, 0.8, True, F.elu(x)),
    "gelu": lambda dy, x: aten.gelu_backward(dy, x),
    "gelu tanh": lambda dy, x: aten.gelu_backward(dy, x, approximate="tanh"),
    "hardsigmoid": lambda dy, x: aten.hardsigmoid_backward(dy, x * 3),
    "hardswish": lambda dy, x: aten.hardswish_backward(dy, x * 3),
    "hardtanh": lambda dy, x: aten.hardtanh_backward(dy, x, -1, 1),
    "leaky_relu": lambda dy, x: aten.leaky_relu_backward(dy, x, 0.2, False),
    "log_softmax": lambda dy, x: aten._log_softmax_backward_data(dy, x.log_softmax(1), 1, x.dtype),
    "mish": lambda dy, x: aten.mish_backward(dy, x),
    "sigmoid": lambda dy, x: aten.sigmoid_backward(dy, x.sigmoid()),
    "silu": lambda dy, x: aten.silu_backward(dy, x),
    "softmax": lambda dy, x: aten._softmax_backward_data(dy, x.softmax(0), 0, x.dtype),
    "softplus": lambda dy, x: aten.softplus_backward(dy, x, 2, 20),
    "softshrink": lambda dy, x: aten.softshrink_backward(dy, x, 0.5),
    "tanh": lambda dy, x: aten.tanh_backward(dy, x.tanh()),
    "threshold": lambda dy, x: aten.threshold_backward(dy, x, 0.1),
}


@pytest.mark.parametrize("dtype", FLOATS)
def test_gradients_of_activations(dtype):
    tolerance = {"rtol": 0.02, "atol": 0.02} if dtype == torch.bfloat16 else {"rtol": 1e-5, "atol": 1e-5}
    compare(ACTIVATIONS, numbers(4, 6, dtype=dtype), numbers(4, 6, low=-3, high=3, dtype=dtype), **tolerance)


def test_gradients_of_convolutions():
    x, w, transposed = numbers(2, 4, 7, 6), numbers(6, 2, 3, 3), numbers(4, 3, 3, 3)
    everything = [True, True, True]

    def plain(x, w, t):
        y = aten.convolution(x, w, None, [2, 1], [1, 0], [1, 2], False, [0, 0], 2)
        return aten.convolution_backward(y, x, w, [6], [2, 1], [1, 0], [1, 2], False, [0, 0], 2, everything)

    def back(x, w, t):
        y = aten.convolution(x, t, None, [2, 2], [1, 1], [1, 1], True, [1, 0], 2)
        return aten.convolution_backward(y, x, t, [6], [2, 2], [1, 1], [1, 1], True, [1, 0], 2, everything)

    def of_weight_alone(x, w, t):
        y = aten.convolution(x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 2)
        return aten.convolution_backward(y, x, w, None, [1, 1], [0, 0], [1, 1], False, [0, 0], 2, [False, True, False])[1]

    compare({"convolution": plain, "transposed": back, "weight": of_weight_alone}, x, w, transposed, rtol=1e-4, atol=1e-4)


def test_gradients_of_norms():
    everything = [True, True, True]

    def layer(x, w):
        y, mean, scale = aten.native_layer_norm(x, [6], w, w, 1e-3)
        return y, mean, scale, aten.native_layer_norm_backward(y * 2 + 1, x, [6], mean, scale, w, w, everything)

    def group(x, w):
        y, mean, scale = aten.native_group_norm(x, w, w, 3, 6, 6, 2, 1e-3)
        return y, mean, scale, aten.native_group_norm_backward(y * 2 + 1, x, mean, scale, w, 3, 6, 6, 2, everything)

    def batch(x, w):
        mean, var = torch.zeros(6), torch.ones(6)
        y, save_mean, save_scale, _, _ = aten._native_batch_norm_legit_functional(x, w, w, mean, var, True, 0.1, 1e-3)
        arguments = (x, w, mean, var, save_mean, save_scale)
        return (
            y,
            aten.native_batch_norm_backward(y + x, *arguments, True, 1e-3, everything),
            aten.native_batch_norm_backward(y + x, *arguments, False, 1e-3, everything),
        )

    x, w = numbers(3, 6, 6), numbers(6, low=0.5)
    compare({"layer": layer, "group": group, "batch": batch}, x, w, rtol=1e-4, atol=1e-4)


def test_the_gradient_of_rms_norm():
    """Which PyTorch has no kernel for on the CPU."""

    class Back(torch.nn.Module):
        def forward(self, x, w, dy):
            scale = torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-3)
            return aten._fused_rms_norm_backward(dy, x, [6], scale, w, [True, True])

    x, w, dy = numbers(3, 4, 6).requires_grad_(), numbers(6, low=0.5).requires_grad_(), numbers(3, 4, 6, low=-1)
    want = torch.autograd.grad(F.rms_norm(x, [6], w, 1e-3), (x, w), dy)
    with torch.no_grad():
        got = tenon.compile(Back(), (x, w, dy))(x, w, dy)
    for one, other in zip(got, want):
        torch.testing.assert_close(one, other, rtol=1e-4, atol=1e-4)


def test_gradients_of_pools_and_images():
    def most(x):
        y, places = aten.max_pool2d_with_indices(x, [3, 3], [2, 2], [1, 1])
        return y, places, aten.max_pool2d_with_indices_backward(y, x, [3, 3], [2, 2], [1, 1], [1, 1], False, places)

    def adaptive_most(x):
        y, places = aten.adaptive_max_pool2d(x, [3, 4])
        return y, places, aten.adaptive_max_pool2d_backward(y, x, places)

    def mean(x, ceil, divisor):
        arguments = [3, 2], [2, 2], [1, 0], ceil, True, divisor
        return aten.avg_pool2d_backward(aten.avg_pool2d(x, *arguments), x, *arguments)

    ops = {
        "max_pool2d": most,
        "adaptive_max_pool2d": adaptive_most,
        "adaptive_avg_pool2d": lambda x: aten._adaptive_avg_pool2d_backward(aten._adaptive_avg_pool2d(x, [3, 4]), x),
        "avg_pool2d": lambda x: mean(x, False, None),
        "avg_pool2d by a divisor": lambda x: mean(x, True, 5),
        "bilinear": lambda x: aten.upsample_bilinear2d_backward(
            aten.upsample_bilinear2d(x, [10, 5], False), [10, 5], list(x.shape), False
        ),
        "nearest": lambda x: aten.upsample_nearest2d_backward(
            aten.upsample_nearest2d(x, [10, 5]), [10, 5], list(x.shape)
        ),
        "reflection": lambda x: aten.reflection_pad2d_backward(aten.reflection_pad2d(x, [1, 2, 0, 3]), x, [1, 2, 0, 3]),
        "replication": lambda x: aten.replication_pad2d_backward(
            aten.replication_pad2d(x, [1, 2, 0, 3]), x, [1, 2, 0, 3]
        ),
        "replication inwards": lambda x: aten.replication_pad2d(x, [-6, 8, 0, 0]),
    }
    compare(ops, numbers(2, 3, 7, 6), rtol=1e-5, atol=1e-5)
    grid = numbers(2, 4, 5, 2, low=-1.2, high=1.2)
    compare(
        {"grid": lambda x, g: aten.grid_sampler_2d_backward(g[:, None, :, :, 0].expand(2, 3, 4, 5), x, g, 0, 0, False, [True, True])},
        numbers(2, 3, 7, 6),
        grid,
        rtol=1e-4,
        atol=1e-4,
    )


@pytest.mark.parametrize("causal", [False, True])
def test_attention_and_its_gradient(causal):
    q, k, v, dy = (numbers(2, 3, size, 8) for size in (5, 5, 5, 6))
    dy, mask = dy[:, :, :5], numbers(5, 5)

    def attend(q, k, v, dy):
        mask_of = {} if causal else {"attn_mask": mask}
        y, lse = aten._scaled_dot_product_flash_attention_for_cpu(q, k, v, 0.0, causal, **mask_of, scale=0.3)
        gradients = aten._scaled_dot_product_flash_attention_for_cpu_backward(
            dy, q, k, v, y, lse, 0.0, causal, **mask_of, scale=0.3
        )
        return y, lse, gradients

    compare({"attention": attend}, q, k, v, dy, rtol=1e-4, atol=1e-4)


def test_embeddings_back():
    dy, indices = numbers(2, 3, 4), torch.tensor([[1, 0, 1], [4, 1, 2]])
    ops = {
        "all": lambda dy, i: aten.embedding_dense_backward(dy, i, 6, -1, False),
        "but padding": lambda dy, i: aten.embedding_dense_backward(dy, i, 6, 1, False),
        "masked_scatter": lambda dy, i: aten.masked_scatter_backward(dy, dy > 0.5, [4, 6]),
        "cdist": lambda dy, i: aten._cdist_backward(dy[:, :, :3], dy, dy + 1, 2.0, torch.cdist(dy, dy + 1)),
    }
    compare(ops, dy, indices, rtol=1e-5, atol=1e-5)


def test_draws_have_their_distributions():
    x = torch.zeros(20000)
    module = Ops(
        {
            "bernoulli": lambda x: torch.bernoulli(x, 0.3),
            "normal": lambda x: torch.normal(x + 2, 3.0),
            "uniform": lambda x: aten.uniform(x, -1, 3),
            "exponential": lambda x: aten.exponential(x, 0.5),
            "randint": lambda x: torch.randint(3, 7, (20000,)),
            "geometric": lambda x: aten.geometric(x, 0.25),
        }
    )
    got = tenon.compile(module, (x,))(x)
    mean = {name: each.double().mean().item() for name, each in got.items()}
    assert mean["bernoulli"] == pytest.approx(0.3, abs=0.02)
    assert mean["normal"] == pytest.approx(2, abs=0.1) and got["normal"].std().item() == pytest.approx(3, abs=0.1)
    assert mean["uniform"] == pytest.approx(1, abs=0.05) and got["uniform"].min() >= -1 and got["uniform"].max() < 3
    assert mean["exponential"] == pytest.approx(2, abs=0.1)
    assert sorted(set(got["randint"].tolist())) == [3, 4, 5, 6]
    assert mean["geometric"] == pytest.approx(4, abs=0.2) and got["geometric"].min() == 1


@pytest.mark.parametrize(
    "op, message",
    [
        (lambda x: torch.fft.fft(x), "_fft|fft"),
        (lambda x: aten.embedding_dense_backward(x, torch.tensor([0, 1]), 3, -1, True), "scaled by how often"),
        (lambda x: torch.as_strided(x.expand(3, 2, 2), (2, 2), (1, 1)), "have gaps or overlap"),
        (lambda x: F.dropout(x, 0.5, training=True), "while training"),
    ],
)
def test_what_is_refused(op, message):
    with pytest.raises(tenon.UserError, match=message):
        tenon.compile(Ops({"y": op}), (numbers(2, 2),))


class Back(torch.nn.Module):
    def forward(self, x):
        y, mean, scale = aten.native_layer_norm(x, [8], None, None, 1e-5)
        pooled, places = aten.max_pool2d_with_indices(x, [2, 2], [2, 2])
        w = torch.ones(4, 3, 3, 3)
        z = aten.convolution(x, w, None, [1, 1], [1, 1], [1, 1], False, [0, 0], 1)
        return (
            aten.native_layer_norm_backward(y, x, [8], mean, scale, None, None, [True, False, False])[0],
            aten.max_pool2d_with_indices_backward(pooled, x, [2, 2], [2, 2], [0, 0], [1, 1], False, places),
            aten.convolution_backward(z, x, w, [4], [1, 1], [1, 1], [1, 1], False, [0, 0], 1, [True, True, True]),
            aten.gelu_backward(x, x),
        )


def test_gradients_of_sizes_that_vary():
    module = Back()
    compiled = tenon.compile(module, (numbers(4, 3, 8, 8),), dynamic={"x": {0: "batch"}})
    for batch in (2, 3, 5):
        x = numbers(batch, 3, 8, 8)
        got, want = compiled(x), module(x)
        for one, other in zip(torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)):
            torch.testing.assert_close(one, other, rtol=1e-3, atol=1e-3)
