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
    with pytest.raises(tenon.UserError, match="compiled for arguments"):
        tenon.compile(net, (x,))(x, x)
    with pytest.raises(tenon.UserError, match="torch.nn.Module"):
        tenon.compile("builtin:tiny", (x,))
