"""Modules of PyTorch, compiled through torch.export."""

import pytest

import tenon

torch = pytest.importorskip("torch")
from nets import ConvNet  # noqa: E402


class Net(ConvNet):
    def forward(self, x, scale=None):
        y, h = super().forward(x)
        return {"y": y if scale is None else y * scale, "rest": (h, 7)}


@pytest.fixture(scope="module")
def net():
    torch.manual_seed(0)
    return Net().eval()


def test_a_module_is_compiled(net):
    x = torch.randn(2, 3, 16, 16)
    compiled = tenon.compile(net, (x,))
    got, want = compiled(x), net(x)
    torch.testing.assert_close(got["y"], want["y"])
    torch.testing.assert_close(got["rest"][0], want["rest"][0])
    assert got["rest"][1] == 7
    channels_last = x.to(memory_format=torch.channels_last)
    torch.testing.assert_close(compiled(channels_last)["y"], want["y"])


def test_sizes_that_vary_have_names(net):
    x = torch.randn(2, 3, 16, 16)
    compiled = tenon.compile(net, (x,), dynamic={"x": {0: "batch"}})
    assert compiled.inputs[0].shape == ("batch", 3, 16, 16)
    for batch in (1, 3, 8):
        x = torch.randn(batch, 3, 16, 16)
        torch.testing.assert_close(compiled(x)["y"], net(x)["y"])


def test_an_export_is_a_model(net, tmp_path):
    x = torch.randn(2, 3, 16, 16)
    exported = torch.export.export(net, (x,))
    model = tenon.load(exported)
    assert model.verify(samples=1)
    torch.export.save(exported, tmp_path / "net.pt2")
    again = tenon.load(tmp_path / "net.pt2")
    assert again.inputs == model.inputs and again.node_count == model.node_count


def test_mistakes(net):
    with pytest.raises(tenon.UserError, match="example inputs"):
        tenon.compile(net)
    x = torch.randn(2, 3, 16, 16)
    compiled = tenon.compile(net, (x,))
    for args, given in (((x, x), "(Tensor, Tensor)"), ((x.tolist(),), "([[[[float, float, float, float, …], "), ((), "()")):
        with pytest.raises(tenon.UserError) as caught:
            compiled(*args)
        assert str(caught.value).startswith(f"the module was compiled for arguments (Tensor), but was called with {given}")
    with pytest.raises(TypeError, match="mask"):
        compiled(x, mask=x)
    with pytest.raises(tenon.UserError, match="torch.nn.Module"):
        tenon.compile("builtin:tiny", (x,))


class Scaled(torch.nn.Module):
    def forward(self, x, y=None, scale=2):
        total = x * scale if y is None else x * scale + y
        return {"size": x.shape[0], "none": None, "total": total, "same": x}


def test_arguments_go_by_the_names_of_the_module():
    x, y = torch.randn(2, 3), torch.randn(2, 3)
    net = tenon.compile(Scaled(), (x, y))
    assert repr(net).startswith("<tenon.torch.CompiledModule of <tenon.Model Scaled: (x: f32[2,3], y: f32[2,3]) -> (")
    for found in (net(x, y), net(x, y=y), net(y=y, x=x)):
        assert (found["size"], found["none"]) == (2, None)
        torch.testing.assert_close(found["total"], 2 * x + y)
        torch.testing.assert_close(found["same"], x)
    with pytest.raises(tenon.UserError, match="compiled for arguments"):
        net(x)


def test_arguments_that_are_no_tensors_are_those_that_it_was_compiled_for():
    x = torch.randn(2, 3)
    net = tenon.compile(Scaled(), (x, None, 5))
    torch.testing.assert_close(net(x, None, scale=5)["total"], 5 * x)
    with pytest.raises(tenon.UserError, match="compiled for 5 in the place of 4"):
        net(x, None, 4)


def test_sizes_are_results():
    net = tenon.compile(Scaled(), (torch.randn(2, 3),), dynamic=({0: "batch"},))
    assert net(torch.randn(7, 3))["size"] == 7


def test_modules_take_arrays_and_memory_for_results():
    linear = torch.nn.Linear(3, 4).eval()
    x, out = torch.randn(2, 3), torch.empty(2, 4)
    net = tenon.compile(linear, (x,))
    assert type(net(x.numpy())).__name__ == "ndarray"
    assert net.run(x, out=out, threads=1) is out
    torch.testing.assert_close(out, linear(x).detach())


def test_example_inputs_may_be_named():
    class Scale(torch.nn.Module):
        def forward(self, x, factor, bias=None):
            return x * factor if bias is None else x * factor + bias

    x, factor = torch.randn(3, 4), torch.randn(4)
    net = tenon.compile(Scale(), {"factor": factor, "x": x})
    torch.testing.assert_close(net(x, factor), x * factor)
    with pytest.raises(tenon.UserError, match="not those of Scale.forward"):
        tenon.compile(Scale(), {"y": x, "factor": factor})
