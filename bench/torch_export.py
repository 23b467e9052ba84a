#!/usr/bin/env python3
"""torch_export.py — what Tenon writes of a .pt2, beside torch's own ONNX export of the same module.

usage: torch_export.py [--tenon PROGRAM] [--only REGEX] [--keep FOLDER]

Exports each module both ways, optimises the .pt2 with Tenon, and prints the nodes and bytes of three files: torch's
export (dynamo=True, which optimises it, too), Tenon's of the .pt2, and Tenon's of torch's export. All three are run in
ONNX Runtime and compared with eager PyTorch. Ends with status 1 where Tenon's file of the .pt2 has more nodes than torch's,
1 % and 4 KiB more bytes, or another result. Needs torch 2.13, onnx, onnxscript and onnxruntime.
"""

import argparse
import contextlib
import io
import json
import logging
import pathlib
import re
import subprocess
import sys
import tempfile
import warnings

import numpy
import onnx
import onnxruntime
import torch
from torch import nn
from torch.nn import functional as F

def of(function, *inputs, layers=()):
    """A module that is this function of its layers and inputs."""

    class Module(nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = nn.ModuleList(make() for make in layers)

        def forward(self, *given):
            return function(self.layers, *given)

    return Module, inputs


def rand(*sizes):
    return lambda: torch.randn(*sizes)


def whole(below, *sizes):
    return lambda: torch.randint(0, below, sizes)


def norm(width):
    def make():
        layer = nn.BatchNorm2d(width)
        layer.running_mean.normal_()
        layer.running_var.uniform_(0.5, 1.5)
        return layer

    return make


class Attention(nn.Module):
    def __init__(self, width=32, heads=4, causal=False):
        super().__init__()
        self.heads, self.causal = heads, causal
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)

    def forward(self, x):
        batch, length, width = x.shape
        q, k, v = self.qkv(x).view(batch, length, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        return self.out(y.transpose(1, 2).reshape(batch, length, width))


class Block(nn.Module):
    def __init__(self, width=32):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(width), nn.LayerNorm(width)
        self.attention = Attention(width)
        self.mlp = nn.Sequential(nn.Linear(width, 64), nn.GELU(), nn.Linear(64, width))

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


class Rotary(nn.Module):
    """A layer of a decoder with RMS norms, rotary positions, grouped heads and SwiGLU."""

    def __init__(self, width=32, heads=4, kv_heads=2):
        super().__init__()
        self.heads, self.kv_heads, self.size = heads, kv_heads, width // heads
        self.norm1, self.norm2 = nn.RMSNorm(width), nn.RMSNorm(width)
        self.q = nn.Linear(width, width, bias=False)
        self.k = nn.Linear(width, kv_heads * self.size, bias=False)
        self.v = nn.Linear(width, kv_heads * self.size, bias=False)
        self.o = nn.Linear(width, width, bias=False)
        self.gate, self.up, self.down = (nn.Linear(*s, bias=False) for s in ((width, 64), (width, 64), (64, width)))
        angles = torch.outer(torch.arange(16), 1 / 10000 ** (torch.arange(0, self.size, 2) / self.size))
        self.register_buffer("cos", torch.cat([angles, angles], -1).cos())
        self.register_buffer("sin", torch.cat([angles, angles], -1).sin())

    def rotate(self, x):
        a, b = x.chunk(2, -1)
        return x * self.cos + torch.cat([-b, a], -1) * self.sin

    def forward(self, x):
        batch, length, width = x.shape
        y = self.norm1(x)
        split = lambda z, heads: z.view(batch, length, heads, self.size).transpose(1, 2)
        q, k, v = split(self.q(y), self.heads), split(self.k(y), self.kv_heads), split(self.v(y), self.kv_heads)
        k, v = (z.repeat_interleave(self.heads // self.kv_heads, 1) for z in (self.rotate(k), v))
        y = F.scaled_dot_product_attention(self.rotate(q), k, v, is_causal=True)
        x = x + self.o(y.transpose(1, 2).reshape(batch, length, width))
        y = self.norm2(x)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Residual(nn.Module):
    """A bottleneck of a ResNet with a projection, and squeeze-and-excitation."""

    def __init__(self):
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(8, 4, 1, bias=False), nn.Conv2d(4, 4, 3, 2, 1, bias=False), nn.Conv2d(4, 16, 1)
        self.shortcut = nn.Conv2d(8, 16, 1, 2, bias=False)
        self.norms = nn.ModuleList(norm(width)() for width in (4, 4, 16, 16))
        self.squeeze, self.excite = nn.Conv2d(16, 4, 1), nn.Conv2d(4, 16, 1)

    def forward(self, x):
        y = F.relu(self.norms[0](self.a(x)))
        y = F.relu(self.norms[1](self.b(y)))
        y = self.norms[2](self.c(y))
        y = y * torch.sigmoid(self.excite(F.relu(self.squeeze(F.adaptive_avg_pool2d(y, 1)))))
        return F.relu(y + self.norms[3](self.shortcut(x)))


class Control(nn.Module):
    def forward(self, x):
        return torch.cond(x.sum() > 0, lambda x: (torch.relu(x) + 1,), lambda x: (torch.tanh(x) * 2,), (x,))[0]


class Scan(nn.Module):
    def forward(self, start, xs):
        from torch._higher_order_ops.scan import scan

        return scan(lambda carry, x: (carry * 0.9 + x, torch.tanh(carry)), start, xs)[1]


MODULES = {
    "mlp": (lambda: nn.Sequential(nn.Linear(8, 16), nn.ReLU(), nn.Linear(16, 16), nn.GELU(), nn.Linear(16, 4)), (rand(2, 8),)),
    "mlp_3d": (lambda: nn.Sequential(nn.Linear(8, 16), nn.SiLU(), nn.Linear(16, 4)), (rand(2, 5, 8),)),
    "convolutions": (
        lambda: nn.Sequential(nn.Conv2d(3, 8, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2), nn.Conv2d(8, 16, 3), nn.ReLU(),
                              nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(16, 10)), (rand(2, 3, 16, 16),)),
    "conv_batch_norm": (lambda: nn.Sequential(nn.Conv2d(3, 8, 3, bias=False), norm(8)(), nn.ReLU6()), (rand(1, 3, 8, 8),)),
    "bottleneck": (Residual, (rand(1, 8, 8, 8),)),
    "mobile": (
        lambda: nn.Sequential(nn.Conv2d(8, 32, 1, bias=False), norm(32)(), nn.Hardswish(),
                              nn.Conv2d(32, 32, 3, padding=1, groups=32, bias=False), norm(32)(), nn.Hardswish(),
                              nn.Conv2d(32, 8, 1), nn.Dropout()), (rand(1, 8, 8, 8),)),
    "upsample": (
        lambda: nn.Sequential(nn.ConvTranspose2d(4, 8, 2, 2), nn.LeakyReLU(0.1), nn.Upsample(scale_factor=2, mode="bilinear"),
                              nn.PReLU(8), nn.Upsample(scale_factor=2), nn.PixelShuffle(2)), (rand(1, 4, 4, 4),)),
    "conv1d": (lambda: nn.Sequential(nn.Conv1d(4, 8, 3, padding=2, dilation=2), nn.BatchNorm1d(8), nn.ELU(), nn.AvgPool1d(2)), (rand(1, 4, 16),)),
    "norms": (
        lambda: nn.Sequential(nn.GroupNorm(2, 8), nn.InstanceNorm2d(8, affine=True), nn.LayerNorm([8, 4, 4]), nn.LocalResponseNorm(3)),
        (rand(2, 8, 4, 4),)),
    "rms_norm": (lambda: nn.Sequential(nn.Linear(8, 16), nn.RMSNorm(16), nn.Tanh()), (rand(2, 3, 8),)),
    "attention": (Attention, (rand(2, 16, 32),)),
    "causal_attention": (lambda: Attention(causal=True), (rand(2, 16, 32),)),
    "multihead": (*of(lambda layers, x: layers[0](x, x, x)[0], rand(2, 16, 32), layers=(lambda: nn.MultiheadAttention(32, 4, batch_first=True),)),),
    "encoder_layer": (lambda: nn.TransformerEncoderLayer(32, 4, 64, batch_first=True, activation="gelu"), (rand(2, 16, 32),)),
    "transformer_block": (Block, (rand(2, 16, 32),)),
    "decoder_layer": (Rotary, (rand(1, 16, 32),)),
    "lstm": (*of(lambda layers, x: layers[0](x)[0], rand(2, 6, 8), layers=(lambda: nn.LSTM(8, 16, batch_first=True),)),),
    "bidirectional_lstm": (*of(lambda layers, x: layers[0](x)[0], rand(6, 2, 8), layers=(lambda: nn.LSTM(8, 16, 2, bidirectional=True),)),),
    "gru": (*of(lambda layers, x: layers[0](x)[0], rand(2, 6, 8), layers=(lambda: nn.GRU(8, 16, batch_first=True),)),),
    "embedding": (lambda: nn.Sequential(nn.Embedding(50, 16), nn.LayerNorm(16), nn.Linear(16, 4)), (whole(50, 2, 7),)),
    "activations": (*of(lambda layers, x: [f(x) for f in (F.softplus, F.mish, F.hardsigmoid, F.selu, F.celu, F.softsign, F.logsigmoid,
                                                         F.hardtanh, F.tanhshrink, F.hardshrink, F.softshrink)], rand(4, 8)),),
    "softmaxes": (*of(lambda layers, x: (F.softmax(x, 1), F.log_softmax(x, -1), F.normalize(x), x.logsumexp(1)), rand(4, 8, 3)),),
    "slices": (*of(lambda layers, x: torch.cat([x[:, ::2], x[:, 1::2], x[:, :3].flip(1)], 1).roll(1, 0), rand(4, 8)),),
    "shapes": (*of(lambda layers, x: torch.stack(x.unbind(1), 2).permute(1, 0, 2).unfold(2, 3, 2).mean((1, 3)), rand(4, 7, 5)),),
    "indexing": (*of(lambda layers, x, i: (x.gather(1, i), x[i[0]], x.index_select(1, i[1]), x.scatter(1, i, 0.0)), rand(4, 8), whole(4, 4, 8)),),
    "masks": (*of(lambda layers, x, y: (torch.where(x > y, x, y), x.masked_fill(y < 0, -1e9), x.tril(), x.clamp(-1, 1)), rand(6, 6), rand(6, 6)),),
    "reductions": (*of(lambda layers, x: (x.mean(1), x.var(2), x.std((1, 2), correction=0), x.amax(1), x.argmax(2), x.norm(dim=1),
                                          x.cumsum(1), x.topk(2)[0], x.sort(1)[0], x.prod(1)), rand(3, 4, 5)),),
    "einsum": (*of(lambda layers, x, y: (torch.einsum("bij,bjk->bik", x, y), torch.einsum("bij,bij->b", x, x), torch.baddbmm(x, x, x)),
                   rand(2, 4, 4), rand(2, 4, 4)),),
    "cond": (Control, (rand(3, 4),)),
    "scan": (Scan, (rand(4), rand(5, 4))),
}


def session(path):
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 3
    return onnxruntime.InferenceSession(path, options, providers=["CPUExecutionProvider"])


def difference(path, feeds, expected):
    """The largest of a result to what eager PyTorch gives, relative to that."""
    run = session(path)
    results = run.run(None, {port.name: feed for port, feed in zip(run.get_inputs(), feeds)})
    largest = 0.0
    for result, wanted in zip(results, expected, strict=True):
        if result.shape != wanted.shape:
            return float("inf")
        scale = max(1.0, float(numpy.abs(wanted).max(initial=0)))
        largest = max(largest, float(numpy.abs(result.astype("f8") - wanted.astype("f8")).max(initial=0)) / scale)
    return largest


def count_nodes(tenon, path):
    """Nodes that run, those of nested graphs included: as Tenon counts them, before it optimises."""
    return json.loads(subprocess.run([tenon, "optimize", path, "--stats", "-"], check=True, capture_output=True).stdout)["nodes_before"]


def exports(name, folder, tenon):
    """The three files, and what eager PyTorch gives."""
    kind, inputs = MODULES[name]
    torch.manual_seed(0)
    net, arguments = kind().eval(), tuple(make() for make in inputs)
    with torch.no_grad():
        expected = net(*arguments)
    program = torch.export.export(net, arguments)
    paths = {each: str(folder / f"{name}.{each}") for each in ("pt2", "torch.onnx", "pt2.onnx", "tenon.onnx")}
    torch.export.save(program, paths["pt2"])
    with contextlib.redirect_stdout(io.StringIO()):
        torch.onnx.export(program, (), dynamo=True, external_data=False).save(paths["torch.onnx"])
    model = onnx.load(paths["torch.onnx"])  # without what only tells where nodes come from
    for node in model.graph.node:
        del node.metadata_props[:]
        node.ClearField("doc_string")
    for each in [*model.graph.value_info, *model.graph.input, *model.graph.output, *model.graph.initializer]:
        del each.metadata_props[:]
        each.ClearField("doc_string")
    del model.graph.metadata_props[:], model.metadata_props[:], model.graph.value_info[:]
    onnx.save(model, paths["torch.onnx"])
    for source, result in (("pt2", "pt2.onnx"), ("torch.onnx", "tenon.onnx")):
        subprocess.run([tenon, "optimize", paths[source], "-o", paths[result]], check=True, capture_output=True)
    expected = [expected] if isinstance(expected, torch.Tensor) else list(expected)
    return paths, [each.numpy() for each in arguments], [each.numpy() for each in expected]


def main():
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--tenon", default="build/tenon")
    parser.add_argument("--only", default="")
    parser.add_argument("--keep", type=pathlib.Path, help="keeps the files in this folder")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    logging.disable(logging.WARNING)
    print(f"{'module':<20} {'torch':>6} {'.pt2':>6} {'both':>6} {'torch B':>9} {'.pt2 B':>9} {'both B':>9} {'difference':>11}")
    failed = []
    with tempfile.TemporaryDirectory() as temporary:
        folder = options.keep or pathlib.Path(temporary)
        folder.mkdir(exist_ok=True)
        for name in (each for each in MODULES if re.search(options.only, each)):
            try:
                paths, feeds, expected = exports(name, folder, options.tenon)
                files = ("torch.onnx", "pt2.onnx", "tenon.onnx")
                nodes = [count_nodes(options.tenon, paths[each]) for each in files]
                sizes = [pathlib.Path(paths[each]).stat().st_size for each in files]
                error = max(difference(paths[each], feeds, expected) for each in files[1:])
            except Exception as reason:  # of one module, which says nothing of the others
                said = reason.stderr.decode() if isinstance(reason, subprocess.CalledProcessError) else str(reason)
                print(f"{name:<20} {type(reason).__name__}: {said.strip().splitlines()[0][:150] if said.strip() else ''}", flush=True)
                failed.append(name)
                continue
            is_worse = nodes[1] > nodes[0] or sizes[1] > sizes[0] * 1.01 + 4096 or not error < 1e-4
            failed += [name] if is_worse else []
            print(f"{name:<20} {nodes[0]:>6} {nodes[1]:>6} {nodes[2]:>6} {sizes[0]:>9} {sizes[1]:>9} {sizes[2]:>9} {error:>11.1e}"
                  f"{'  worse' if is_worse else ''}", flush=True)
    print(f"{len(failed)} worse: {', '.join(failed)}" if failed else "none is worse")
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
