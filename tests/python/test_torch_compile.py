"""torch.compile with Tenon's backend, compared with eager PyTorch."""

import threading
import warnings

import pytest

import tenon

torch = pytest.importorskip("torch")
from nets import ConvNet  # noqa: E402

from tenon.torch import _outputs, backend, explain, listening  # noqa: E402
from tenon.torch._graph import CompiledGraph  # noqa: E402


class Net(ConvNet):
    def forward(self, x):
        y, h = super().forward(x)
        return y, h.permute(0, 2, 3, 1)


@pytest.fixture(autouse=True)
def fresh():
    torch._dynamo.reset()
    torch.manual_seed(0)


@pytest.fixture
def net():
    return Net().eval()


def assert_same(got, want):
    got, want = torch.utils._pytree.tree_leaves(got), torch.utils._pytree.tree_leaves(want)
    assert len(got) == len(want)
    for one, other in zip(got, want):
        if isinstance(other, torch.Tensor):
            torch.testing.assert_close(one, other)
            assert one.stride() == other.stride()
        else:
            assert one == other


def compiled(function, **options):
    return torch.compile(function, backend=backend, **options)


def graphs_of(call):
    graphs = []
    with listening(graphs.append):
        call()
    return graphs


def test_the_backend_is_found_by_its_name():
    from importlib import metadata

    if not any(each.name == "tenon" for each in metadata.entry_points(group="torch_dynamo_backends")):
        pytest.skip("the package is not installed")
    assert "tenon" in torch._dynamo.list_backends()
    x = torch.randn(3)
    assert_same(torch.compile(lambda x: x.sin() + 1, backend="tenon")(x), x.sin() + 1)


@torch.no_grad()
def test_all_nodes_of_a_module_are_compiled(net):
    x = torch.randn(2, 3, 8, 8)
    fast = compiled(net)
    (graph,) = graphs_of(lambda: fast(x))
    assert (graph.kind, graph.external, graph.fallback) == ("inference", [], "")
    assert_same(fast(x), net(x))


@torch.no_grad()
def test_weights_are_watched(net):
    x = torch.randn(2, 3, 8, 8)
    fast = compiled(net)
    fast(x)
    net.conv.weight.mul_(2)
    assert_same(fast(x), net(x))
    net.load_state_dict(Net().state_dict())
    assert_same(fast(x), net(x))
    net.norm.running_var.add_(1)  # which was folded into the convolution
    assert_same(fast(x), net(x))
    net.linear.weight = torch.nn.Parameter(torch.randn(4, 8))
    assert_same(fast(x), net(x))


@torch.no_grad()
def test_weights_that_are_changed_from_step_to_step_need_no_compilation(net):
    x = torch.randn(2, 3, 8, 8)
    fast = compiled(net)
    fast(x)

    def train():
        for _ in range(3):
            for parameter in net.parameters():
                parameter.add_(0.01 * torch.randn_like(parameter))
            assert_same(fast(x), net(x))

    assert graphs_of(train) == []


@torch.no_grad()
def test_a_new_weight_where_an_old_one_was_is_noticed():
    module = torch.nn.Linear(64, 64, bias=False)
    fast, x = compiled(module), torch.randn(2, 64)
    for _ in range(6):
        module.weight = None  # its memory is free
        module.weight = torch.nn.Parameter(torch.randn(64, 64))
        assert_same(fast(x), module(x))
        module.weight.data = torch.randn(64, 64)
        assert_same(fast(x), module(x))


@torch.no_grad()
def test_modules_that_share_a_graph_have_programs_of_their_own():
    blocks = [torch.nn.Linear(32, 32) for _ in range(4)]
    for block in blocks:
        block.compile(backend=backend)
    x = torch.randn(4, 32)
    want = [torch.nn.functional.linear(x, block.weight, block.bias) for block in blocks]
    for block in blocks:
        block(x)
    failures = []

    def call(block, expected):
        try:
            for _ in range(50):
                assert_same(block(x), expected)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=call, args=each) for each in zip(blocks, want)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_weights_may_be_inputs_and_of_inference_mode(net):
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        fast = compiled(net, options={"weights": "inputs"})
        fast(x)
        net.conv.weight.data.mul_(2)
        assert_same(fast(x), net(x))
    with torch.inference_mode():
        other = Net().eval()
        assert_same(compiled(other)(x), other(x))


@torch.no_grad()
def test_equal_weights_stay_apart():
    a, b = torch.nn.Linear(4, 4, bias=False), torch.nn.Linear(4, 4, bias=False)
    b.load_state_dict(a.state_dict())
    module = torch.nn.ModuleList([a, b])
    fast = compiled(lambda x: (module[0](x), module[1](x)))
    x = torch.randn(2, 4)
    fast(x)
    b.weight.zero_()
    assert_same(fast(x), (a(x), b(x)))


@torch.no_grad()
def test_sizes_that_vary_are_compiled_for_once(net):
    fast = compiled(net)
    x = torch.randn(2, 3, 8, 8)

    def call():
        for batch in range(2, 12):
            x = torch.randn(batch, 3, 8, 8)
            assert_same(fast(x), net(x))

    assert len(graphs_of(call)) <= 2
    assert len(graphs_of(lambda: [compiled(net, dynamic=True)(torch.randn(n, 3, 8, 8)) for n in (2, 5)])) <= 2
    assert_same(fast(x), net(x))


def test_batches_that_vary_in_training_are_compiled_whole():
    norm, other = torch.nn.BatchNorm2d(3), torch.nn.BatchNorm2d(3)
    fast = compiled(other, dynamic=True)

    def train():
        for batch, side in ((4, 6), (2, 9), (7, 5)):
            x = torch.randn(batch, 3, side, side)
            for module, call in ((norm, norm), (other, fast)):
                module.zero_grad()
                call(x).sin().sum().backward()
            torch.testing.assert_close(other.weight.grad, norm.weight.grad, rtol=1e-4, atol=1e-4)
            assert_same([*other.buffers()], [*norm.buffers()])

    graphs = graphs_of(train)
    assert [(graph.kind, graph.external, graph.fallback) for graph in graphs] == [("forward", [], ""), ("backward", [], "")]


@torch.no_grad()
@pytest.mark.parametrize("sizes", [(4, 7, 1, 64), (1, 2, 64), (4, 1, 7)])
def test_what_dynamo_compiles_for_one_alone_is_all_that_is_compiled_more(sizes):
    module = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.Linear(16, 6))

    def graphs(compiler, **options):
        torch._dynamo.reset()
        counted = []

        def count(gm, example_inputs):
            counted.append(gm)
            return compiler(gm, example_inputs)

        fast = torch.compile(module, backend=count, **options)
        for batch in sizes:
            x = torch.randn(batch, 6)
            torch.testing.assert_close(fast(x), module(x))
        return len(counted)

    def nothing(gm, example_inputs):
        return gm.forward

    assert graphs(backend) == graphs(nothing) <= 3
    assert graphs(backend, dynamic=True) == graphs(nothing, dynamic=True) <= 2
    with torch.fx.experimental._config.patch(backed_size_oblivious=True):
        assert graphs(backend) == graphs(nothing) <= 2


@pytest.fixture
def compiled_programs(monkeypatch):
    """The graphs that programs are compiled of."""
    found, compile_it = [], CompiledGraph._compile
    monkeypatch.setattr(CompiledGraph, "_compile", lambda graph, weights: (found.append(graph), compile_it(graph, weights))[1])
    return found


@torch.no_grad()
def test_a_graph_that_dynamo_traces_again_is_not_compiled_again(compiled_programs):
    # PyTorch's convolutions have it trace batches of fewer than 16 by themselves.
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 4, 1)).eval()
    fast = compiled(module, dynamic=True)

    def call():
        for batch in (4, 2, 20, 15, 64):
            x = torch.randn(batch, 3, 6, 6)
            assert_same(fast(x), module(x))

    assert len(graphs_of(call)) == 2
    assert len(compiled_programs) == 1
    module[0].weight.mul_(2)
    call()
    module[2].weight = torch.nn.Parameter(torch.randn(4, 8, 1, 1))
    call()
    assert len(compiled_programs) == 2


@torch.no_grad()
def test_maxima_of_images_of_any_size_are_compiled():
    def pool(x):
        return torch.nn.functional.max_pool2d(x, 3, 2, ceil_mode=True)

    fast, x = compiled(pool, dynamic=True), torch.randn(2, 3, 9, 12)
    (graph,) = graphs_of(lambda: fast(x))
    assert graph.external == []
    for height, width in ((9, 12), (8, 31), (30, 30)):
        x = torch.randn(2, 3, height, width)
        assert_same(fast(x), pool(x))


@torch.no_grad()
@pytest.mark.parametrize("lengths", [(1, 2, 3, 64, 511, 512), (512, 200, 7, 2, 33)])
def test_lengths_that_vary_are_compiled_for_once(lengths):
    layer = torch.nn.TransformerEncoderLayer(32, 4, 64, batch_first=True).eval()
    embedding = torch.nn.Embedding(50, 32)
    positions = torch.nn.Parameter(torch.randn(512, 32))

    def encode(ids):
        causal = torch.nn.Transformer.generate_square_subsequent_mask(ids.shape[1])
        return layer(embedding(ids) + positions[: ids.shape[1]], src_mask=causal, is_causal=True)

    fast = compiled(encode)

    def call():
        for length in lengths:
            ids = torch.randint(50, (2, length))
            torch.testing.assert_close(fast(ids), encode(ids))

    assert len(graphs_of(call)) <= 2


@torch.no_grad()
def test_batches_and_lengths_vary_together():
    mixer = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.GELU(), torch.nn.LayerNorm(16), torch.nn.Linear(16, 6))
    fast = compiled(mixer)

    def call():
        for batch, length in ((3, 5), (3, 9), (7, 9), (64, 512), (2, 2), (4, 77)):
            x = torch.randn(batch, length, 6)
            torch.testing.assert_close(fast(x), mixer(x))

    assert len(graphs_of(call)) <= 4  # two for each


@torch.no_grad()
def test_memory_in_another_order_is_not_copied(net):
    x = torch.randn(2, 3, 8, 8).to(memory_format=torch.channels_last)
    fast = compiled(net)
    (graph,) = graphs_of(lambda: fast(x))
    assert graph.copies == []
    assert_same(fast(x), net(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda x: x[:, ::2] + 1,
        lambda x: x.t(),
        lambda x: (x, x.t(), x + 1, x),
        lambda x: (x + 1).t()[1:],
        lambda x: x.expand(2, *x.shape) * 2,
        lambda x: (x * 2).expand(2, *x.shape),
        lambda x: {"a": [x.sum(), None, 3], "b": x.argmax()},
        lambda x: x.unfold(1, 2, 1),
        lambda x: torch.split(x * 2, 2, dim=1),
    ],
)
@pytest.mark.parametrize("dynamic", [False, True])
def test_outputs_are_laid_out_as_pytorch_does(function, dynamic):
    for x in (torch.randn(4, 6), torch.randn(6, 4).t(), torch.randn(4, 12)[:, ::2]):
        torch._dynamo.reset()
        assert_same(compiled(function, dynamic=dynamic)(x), function(x))


@pytest.mark.parametrize(
    "function",
    [
        lambda y: (y[:5], y),
        lambda y: (y.view(4, 5), y.view(20)),
        lambda y: (y, y.view(5, 4).t()),
    ],
)
def test_outputs_share_memory_where_they_do_in_pytorch(function):
    x = torch.arange(20.0)
    results = compiled(lambda x: function(x * 2))(x)
    want = function(x * 2)
    for each in (results, want):
        each[0].zero_()
    assert_same(results, want)


@pytest.mark.parametrize(
    "function",
    [
        lambda x, n: x.narrow(0, 1, n.item()),
        lambda x, n: x[2 : n.item()],
        lambda x, n: x[n.item()],
    ],
)
def test_views_of_arguments_by_numbers_that_are_read(function):
    x, n = torch.arange(20.0), torch.tensor(5)
    with torch._dynamo.config.patch(capture_scalar_outputs=True):
        got = compiled(function)(x, n)
    assert_same(got, function(x, n))
    got.fill_(-1)
    assert (x == -1).any()


@pytest.mark.parametrize(
    "x, function",
    [
        (torch.arange(10.0)[3:], lambda x: x.as_strided((2,), (1,), 3) + 0),
        (torch.randn(4, 12)[:, ::2], lambda x: x.as_strided((2, 2), (12, 1), 0) + 0),
        (torch.randn(4, 12), lambda x: x.as_strided((2, 2), (12, 1), 3) + 0),
    ],
)
def test_strides_are_those_of_pytorchs_memory(x, function):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # PyTorch may run it
        assert_same(compiled(function)(x), function(x))


def test_what_is_changed_in_place_is_changed():
    def step(x, total):
        total.add_(x)
        total[0] = 5
        return total * 2

    x = torch.randn(3, 4)
    got, want = torch.zeros(3, 4), torch.zeros(3, 4)
    fast = compiled(step)
    for _ in range(2):
        assert_same(fast(x, got), step(x, want))
        assert_same(got, want)


OPTIMISERS = {
    "adamw": lambda parameters: torch.optim.AdamW(parameters, 1e-2, foreach=True),
    "adamw, one by one": lambda parameters: torch.optim.AdamW(parameters, 1e-2, foreach=False),
    "sgd": lambda parameters: torch.optim.SGD(parameters, 1e-2, momentum=0.9, nesterov=True, weight_decay=0.1, foreach=True),
    "radam": lambda parameters: torch.optim.RAdam(parameters, 1e-2, foreach=True),
}


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_steps_of_optimisers_are_compiled_whole(optimiser):
    def train(compile_it):
        torch.manual_seed(1)
        module = torch.nn.Sequential(torch.nn.Linear(6, 8), torch.nn.GELU(), torch.nn.Linear(8, 1))
        found = optimiser(module.parameters())
        step = compiled(found.step) if compile_it else found.step
        x = torch.randn(32, 6)
        for _ in range(5):
            found.zero_grad()
            module(x).square().mean().backward()
            step()
        return [each.detach() for each in module.parameters()]

    graphs = []
    with listening(graphs.append):
        got = train(True)
    assert all(not graph.external and not graph.fallback for graph in graphs)
    assert len(graphs) <= 2  # the first step has no state yet
    torch.testing.assert_close(got, train(False))


@pytest.fixture
def written_back(monkeypatch):
    """For each write to an argument, whether it was computed there."""
    found, write_back = [], _outputs._write_back

    def note(argument, result):
        found.append(result.data_ptr() == argument.data_ptr())
        write_back(argument, result)

    monkeypatch.setattr(_outputs, "_write_back", note)
    return found


@pytest.mark.parametrize("optimiser", OPTIMISERS.values(), ids=OPTIMISERS)
def test_steps_are_taken_in_the_memory_of_the_parameters(optimiser, written_back):
    module = torch.nn.Sequential(torch.nn.Conv2d(3, 8, 3), torch.nn.Linear(6, 4))
    found = optimiser(module.parameters())
    step = compiled(found.step)
    for _ in range(2):
        for each in module.parameters():
            each.grad = torch.randn_like(each)
        step()
    written_back.clear()
    versions = [each._version for each in module.parameters()]
    step()
    assert all(written_back) and len(written_back) >= 4
    assert all(each._version > old for each, old in zip(module.parameters(), versions))


@pytest.mark.parametrize(
    "function",
    [
        lambda a, b: a.copy_(a.sum(0) + a),
        lambda a, b: a.copy_(a.flip(0)),
        lambda a, b: (a.mul_(2), b.copy_(a.t() + b)),
        lambda a, b: (a.clone(), a.mul_(2))[0],
        lambda a, b: (b.add_(a), a.add_(b), b.mul_(a)),
    ],
)
def test_what_is_computed_in_place_does_not_read_what_is_gone(function, written_back):
    for make in (lambda: torch.randn(5, 5), lambda: torch.randn(5, 5).t(), lambda: torch.randn(5, 9)[:, ::2]):
        torch._dynamo.reset()
        got = [make(), make()]
        want = [torch.empty_strided(each.shape, each.stride()).copy_(each) for each in got]
        assert_same(compiled(function)(*got), function(*want))
        assert_same(got, want)
    assert written_back


def test_a_result_that_is_kept_is_not_the_argument_that_it_was_written_to():
    def step(a, b):
        y = a + b
        a.copy_(y)
        return y

    a, b = torch.randn(4), torch.randn(4)
    want = a + b
    y = compiled(step)(a, b)
    a.zero_()
    assert_same(y, want)


def test_what_is_trained_by_compiled_steps_is_compiled_anew():
    module = torch.nn.Linear(4, 4)
    optimiser = torch.optim.SGD(module.parameters(), 0.1, foreach=True)
    fast, step = compiled(module), compiled(optimiser.step)
    x = torch.randn(2, 4)
    for _ in range(3):
        optimiser.zero_grad()
        module(x).square().sum().backward()
        step()
        with torch.no_grad():
            assert_same(fast(x), module(x))


def swap(a, b):
    kept = a.clone()
    a.copy_(b)
    b.copy_(kept)


@pytest.mark.parametrize(
    "function",
    [
        swap,
        lambda a, b: a.copy_(a.flip(0)),
        lambda a, b: a.sub_(a.sum(0)),
        lambda a, b: (b.copy_(a), a.add_(1)),
        lambda a, b: (a.add_(b), b.mul_(a)),
        lambda a, b: (a * 1, a.add_(b)),
        lambda a, b: (a.add_(b) * 2, a),
        lambda a, b: a[1:].add_(a[:-1].clone()),
        lambda a, b: a.copy_(b.t()),
        lambda a, b: (a.fill_(3), b.zero_()),
    ],
)
def test_old_elements_are_read_before_they_are_overwritten(function):
    for make in (lambda: torch.randn(4, 4), lambda: torch.randn(4, 4).t(), lambda: torch.randn(4, 8)[:, ::2]):
        torch._dynamo.reset()
        got = [make(), make()]
        want = [torch.empty_strided(each.shape, each.stride()).copy_(each) for each in got]
        results = compiled(function)(*got), function(*want)
        assert_same(*results)
        assert_same(got, want)


@torch.no_grad()
@pytest.mark.parametrize("norm_first", [False, True])
@pytest.mark.parametrize("mask", ["none", "causal", "padding", "both"])
def test_layers_of_transformers_are_compiled_whole(norm_first, mask):
    layer = torch.nn.TransformerEncoderLayer(16, 4, 32, batch_first=True, norm_first=norm_first, activation="gelu").eval()
    x, causal = torch.randn(2, 7, 16), torch.nn.Transformer.generate_square_subsequent_mask(7)
    padding = torch.arange(7)[None] > torch.tensor([6, 3])[:, None]
    masks = {
        "none": {}, "causal": {"src_mask": causal}, "padding": {"src_key_padding_mask": padding},
        "both": {"src_mask": causal != 0, "src_key_padding_mask": padding},
    }[mask]  # fmt: skip
    fast = compiled(layer)
    (graph,) = graphs_of(lambda: fast(x, **masks))
    assert graph.external == []
    assert_same(fast(x, **masks), layer(x, **masks))


@torch.no_grad()
def test_attention_with_weights_is_compiled_whole():
    attention, x = torch.nn.MultiheadAttention(16, 4, batch_first=True).eval(), torch.randn(2, 7, 16)
    for options in ({}, {"need_weights": False}, {"average_attn_weights": False}):
        torch._dynamo.reset()
        fast = compiled(lambda x: attention(x, x, x, **options))
        (graph,) = graphs_of(lambda: fast(x))
        assert graph.external == []
        assert_same(fast(x), attention(x, x, x, **options))


def test_gradients(net):
    net.train()
    x = torch.randn(4, 3, 8, 8)
    other = Net().train()
    other.load_state_dict(net.state_dict())
    fast = compiled(other)
    for _ in range(3):
        for module, call in ((net, net), (other, fast)):
            module.zero_grad()
            y, image = call(x)
            (y.square().sum() + image.sin().sum()).backward()
    for (name, one), (_, two) in zip(net.named_parameters(), other.named_parameters()):
        torch.testing.assert_close(two.grad, one.grad, rtol=1e-4, atol=1e-4, msg=name)
    for (name, one), (_, two) in zip(net.named_buffers(), other.named_buffers()):
        torch.testing.assert_close(two, one, msg=name)


def test_training_goes_as_in_pytorch():
    def train(compile_it):
        torch.manual_seed(1)
        module = torch.nn.Sequential(torch.nn.Linear(8, 32), torch.nn.GELU(), torch.nn.LayerNorm(32), torch.nn.Linear(32, 1))
        call = compiled(module) if compile_it else module
        optimiser = torch.optim.AdamW(module.parameters(), 1e-2)
        x, y = torch.randn(64, 8), torch.randn(64, 1)
        losses = []
        for _ in range(20):
            optimiser.zero_grad()
            loss = torch.nn.functional.mse_loss(call(x), y)
            loss.backward()
            optimiser.step()
            losses.append(loss.item())
        return losses

    torch.testing.assert_close(torch.tensor(train(True)), torch.tensor(train(False)), rtol=1e-4, atol=1e-5)


def test_what_tenon_lacks_is_left_to_pytorch():
    def function(x):
        return torch.linalg.eigvalsh(x @ x.t()) + 1

    x = torch.randn(4, 4)
    found = explain(function, x)
    assert [op for _, op, _, _ in found.external] == ["aten._linalg_eigh.default"]
    assert "test_torch_compile.py" in found.external[0][2]
    assert "PyTorch computes" in str(found)
    torch.testing.assert_close(compiled(function)(x), function(x))
    with pytest.raises(Exception, match="Tenon has no aten._linalg_eigh.default"):
        compiled(function, options={"fallback": "error"})(x)


@torch._dynamo.config.patch(capture_dynamic_output_shape_ops=True)
def test_an_error_of_what_pytorch_computes_leaves_with_its_own_type():
    def function(x):
        return torch.linalg.eigvalsh(x), torch.nonzero(x)  # sizes that depend on elements

    x = torch.eye(3)
    call = compiled(function)
    with pytest.raises(torch.linalg.LinAlgError):
        call(x * float("nan"))
    torch.testing.assert_close(call(x), function(x))


def test_a_graph_that_cannot_be_compiled_is_said():
    x = torch.randn(3, dtype=torch.complex64)
    with pytest.warns(UserWarning, match="PyTorch runs a graph"):
        torch.testing.assert_close(compiled(lambda x: x.to(torch.complex32))(x), x.to(torch.complex32))


def test_random_numbers_are_pytorchs():
    def function(x):
        return torch.nn.functional.dropout(x, 0.5) + torch.randn_like(x)

    x = torch.randn(64)
    torch.manual_seed(3)
    want = function(x)
    torch.manual_seed(3)
    got = compiled(function)(x)
    assert_same(got, want)


def test_operators_of_ones_own_are_called():
    @torch.library.custom_op("tenon_tests::twice", mutates_args=())
    def twice(x: torch.Tensor) -> torch.Tensor:
        return x * 2

    @twice.register_fake
    def _(x):
        return torch.empty_like(x)

    x = torch.randn(5)
    assert_same(compiled(lambda x: twice(x + 1).sin())(x), (2 * (x + 1)).sin())


def test_an_exception_of_an_operator_leaves_as_it_is():
    with pytest.raises(torch.linalg.LinAlgError, match="singular"):
        compiled(torch.linalg.inv)(torch.zeros(3, 3))


def test_options_are_checked():
    with pytest.raises(Exception, match="no option 'numeric': did you mean 'numerics'"):
        compiled(torch.sin, options={"numeric": "strict"})(torch.randn(3))
    with pytest.raises(Exception, match="'threads' of the backend tenon is of the type int"):
        compiled(torch.sin, options={"threads": "4"})(torch.randn(3))
    x = torch.randn(3)
    assert_same(compiled(torch.sin, options={"numerics": "strict", "threads": 1})(x), x.sin())


def test_threads_share_a_compiled_function(net):
    fast = compiled(net)
    x = torch.randn(2, 3, 8, 8)
    with torch.no_grad():
        want = net(x)
        fast(x)
    failures = []

    def call():
        try:
            with torch.no_grad():
                for _ in range(20):
                    assert_same(fast(x), want)
        except BaseException as error:  # noqa: BLE001
            failures.append(error)

    threads = [threading.Thread(target=call) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_warnings_are_not_made_of_what_is_compiled(net):
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("error", UserWarning)
        compiled(net)(torch.randn(2, 3, 8, 8))


