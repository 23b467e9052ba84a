"""Language models with weights of chance as GGUF files, and the same models in numpy.

    python tests/python/gguf_models.py FOLDER    writes those of tests/data/models
"""

import pathlib
import struct
import sys

import numpy

# --- blocks of integers, each from its own formula
#
# The number of a type, the elements and bytes of a block, where its f16 numbers are, and what these are for values of about 1.

BLOCKS = {"Q4_0": (2, 32, 18, {0: 0.2}), "Q4_1": (3, 32, 20, {0: 0.2, 2: -1.5}), "Q5_0": (6, 32, 22, {0: 0.1}),
          "Q5_1": (7, 32, 24, {0: 0.1, 2: -1.5}), "Q8_0": (8, 32, 34, {0: 0.013}), "Q4_K": (12, 256, 144, {0: 0.005, 2: 0.038}),
          "Q5_K": (13, 256, 176, {0: 0.0025, 2: 0.038}), "Q6_K": (14, 256, 210, {208: 0.0008})}
FLOATS = {"F32": 0, "F16": 1, "BF16": 30}


def _element(kind, blocks, e):
    """The value of element e of each block, of which numpy holds the bytes."""
    def f16(at):
        return blocks[:, at:at + 2].copy().view(numpy.float16)[:, 0].astype(numpy.float32)

    def byte(at):
        return blocks[:, at].astype(numpy.int32)

    def bit(at, i):
        return byte(at + i // 8) >> i % 8 & 1

    def six(i, at, shift):  # scale or minimum i of Q4_K and Q5_K
        return byte(at + i) & 63 if i < 4 else byte(12 + i - 4) >> shift & 15 | byte(at + i - 4) >> 6 << 4

    def number(x):
        return x.astype(numpy.float32)

    half = e // 16 * 4
    if kind == "Q8_0":
        return f16(0) * number(byte(2 + e).astype(numpy.int8))
    if kind == "Q4_0":
        return f16(0) * number((byte(2 + e % 16) >> half & 15) - 8)
    if kind == "Q4_1":
        return f16(0) * number(byte(4 + e % 16) >> half & 15) + f16(2)
    if kind == "Q5_0":
        return f16(0) * number((byte(6 + e % 16) >> half & 15 | bit(2, e) << 4) - 16)
    if kind == "Q5_1":
        return f16(0) * number(byte(8 + e % 16) >> half & 15 | bit(4, e) << 4) + f16(2)
    if kind == "Q6_K":
        part, inside = divmod(e, 128)
        low = byte(64 * part + inside % 64) >> inside // 64 * 4 & 15
        high = byte(128 + 32 * part + inside % 32) >> inside // 32 * 2 & 3
        return f16(208) * number(byte(192 + e // 16).astype(numpy.int8)) * number((low | high << 4) - 32)
    i = e // 32
    quant = byte((16 if kind == "Q4_K" else 48) + e // 64 * 32 + e % 32) >> i % 2 * 4 & 15
    if kind == "Q5_K":
        quant |= (byte(16 + e % 32) >> i & 1) << 4
    return f16(0) * number(six(i, 4, 0)) * number(quant) - f16(2) * number(six(i, 8, 4))


class Tensor:
    """Numbers of chance in one of the types: its bytes in the file, and what they stand for in f32."""

    def __init__(self, random, kind, shape, scale):
        self.shape = shape
        count = int(numpy.prod(shape))
        if kind in FLOATS:
            self.type = FLOATS[kind]
            values = (random.standard_normal(shape) * scale).astype(numpy.float32)
            if kind == "BF16":
                self.bytes = (values.view(numpy.uint32) >> 16).astype(numpy.uint16).tobytes()
                self.values = (values.view(numpy.uint32) & numpy.uint32(0xFFFF0000)).view(numpy.float32)
            else:
                stored = values.astype(numpy.float16 if kind == "F16" else numpy.float32)
                self.bytes, self.values = stored.tobytes(), stored.astype(numpy.float32)
            return
        self.type, elements, size, numbers = BLOCKS[kind]
        blocks = numpy.frombuffer(random.bytes(count // elements * size), numpy.uint8).reshape(-1, size).copy()
        for at, usual in numbers.items():
            drawn = usual * scale * random.uniform(0.7, 1.3, len(blocks))
            blocks[:, at:at + 2] = drawn.astype(numpy.float16).view(numpy.uint8).reshape(-1, 2)
        self.bytes = blocks.tobytes()
        self.values = numpy.stack([_element(kind, blocks, e) for e in range(elements)], -1).reshape(shape)


# --- files

def _text(text):
    return struct.pack("<Q", len(text.encode())) + text.encode()


def _value(value):
    if isinstance(value, bool):
        return struct.pack("<IB", 7, value)
    if isinstance(value, int):
        return struct.pack("<II", 4, value)
    if isinstance(value, float):
        return struct.pack("<If", 6, value)
    if isinstance(value, str):
        return struct.pack("<I", 8) + _text(value)
    return struct.pack("<IIQ", 9, 8, len(value)) + b"".join(map(_text, value))


def file_bytes(keys, tensors, version=3, alignment=32):
    header = b"GGUF" + struct.pack("<IQQ", version, len(tensors), len(keys))
    for key, value in keys.items():
        header += _text(key) + _value(value)
    data = b""
    for name, tensor in tensors.items():
        rank = len(tensor.shape)
        header += _text(name) + struct.pack(f"<I{rank}Q", rank, *reversed(tensor.shape))
        header += struct.pack("<IQ", tensor.type, len(data))
        data += tensor.bytes + bytes(-len(tensor.bytes) % alignment)
    return header + bytes(-len(header) % alignment) + data


# --- models

class Decoder:
    """A decoder of architecture llama, qwen2 or qwen3. `kinds` names the type of each matrix, or of all."""

    def __init__(self, architecture, kinds, *, seed=1, layers=1, width=32, hidden=64, heads=4, key_heads=2, size=16, vocabulary=24,
                 tied=False, rotated=None, frequencies=False, **keys):
        random = numpy.random.RandomState(seed)
        self.architecture, self.layers, self.heads, self.key_heads, self.size = architecture, layers, heads, key_heads, size
        self.rotated, self.width = rotated or size, width
        self.base, self.epsilon, self.factor = 500.0, 1e-5, keys.get("rope.scaling.factor", 1.0)

        def matrix(name, rows, columns):
            kind = kinds if isinstance(kinds, str) else kinds[name]
            return Tensor(random, kind, (rows, columns), 1 if name == "token_embd" else columns ** -0.5)

        def vector(count, middle=1.0):
            tensor = Tensor(random, "F32", (count,), 0.2)
            tensor.values = tensor.values + numpy.float32(middle)
            tensor.bytes = tensor.values.tobytes()
            return tensor

        self.tensors = {"token_embd.weight": matrix("token_embd", vocabulary, width), "output_norm.weight": vector(width)}
        if not tied:
            self.tensors["output.weight"] = matrix("output", vocabulary, width)
        if frequencies:
            self.tensors["rope_freqs.weight"] = vector(self.rotated // 2, 2.0)
        for i in range(layers):
            for name, rows, columns in [
                    ("attn_q", heads * size, width), ("attn_k", key_heads * size, width), ("attn_v", key_heads * size, width),
                    ("attn_output", width, heads * size), ("ffn_gate", hidden, width), ("ffn_up", hidden, width),
                    ("ffn_down", width, hidden)]:
                self.tensors[f"blk.{i}.{name}.weight"] = matrix(name, rows, columns)
                if architecture == "qwen2" and name in ("attn_q", "attn_k", "attn_v"):
                    self.tensors[f"blk.{i}.{name}.bias"] = vector(rows, 0.0)
            for name in ["attn_norm", "ffn_norm"]:
                self.tensors[f"blk.{i}.{name}.weight"] = vector(width)
            if architecture == "qwen3":
                for name in ["attn_q_norm", "attn_k_norm"]:
                    self.tensors[f"blk.{i}.{name}.weight"] = vector(size)
        self.keys = {"general.architecture": architecture, "general.name": "of chance", "tokenizer.ggml.tokens": ["a"] * vocabulary}
        numbers = {"block_count": layers, "context_length": 64, "embedding_length": width, "feed_forward_length": hidden,
                   "attention.head_count": heads, "attention.head_count_kv": key_heads, "attention.key_length": size,
                   "attention.value_length": size, "attention.layer_norm_rms_epsilon": self.epsilon, "rope.freq_base": self.base,
                   "rope.dimension_count": self.rotated, "vocab_size": vocabulary, **keys}
        self.keys |= {f"{architecture}.{key}": value for key, value in numbers.items()}

    def write(self, path):
        pathlib.Path(path).write_bytes(file_bytes(self.keys, self.tensors))

    def logits(self, tokens):
        """Of the whole sequence, in f64, from the formulas."""
        def weight(name):
            return self.tensors[name + ".weight"].values.astype(numpy.float64)

        def normed(x, name):
            return x / numpy.sqrt((x * x).mean(-1, keepdims=True) + self.epsilon) * weight(name)

        def linear(x, name):
            bias = self.tensors.get(name + ".bias")
            return x @ weight(name).T + (0 if bias is None else bias.values)

        def turned(x):  # [length, heads, size]
            half = self.rotated // 2
            frequencies = self.base ** (-numpy.arange(half) / half) / self.factor
            if "rope_freqs.weight" in self.tensors:
                frequencies = frequencies / weight("rope_freqs")
            angles = (numpy.arange(len(x))[:, None] * frequencies)[:, None]
            first, second = ((slice(0, self.rotated, 2), slice(1, self.rotated, 2)) if self.architecture == "llama" else
                             (slice(0, half), slice(half, self.rotated)))
            y = x.copy()
            y[..., first] = x[..., first] * numpy.cos(angles) - x[..., second] * numpy.sin(angles)
            y[..., second] = x[..., first] * numpy.sin(angles) + x[..., second] * numpy.cos(angles)
            return y

        def heads(x, name, count):
            x = x.reshape(len(x), count, self.size)
            return normed(x, name) if self.architecture == "qwen3" and name else x

        x = weight("token_embd")[tokens]
        for i in range(self.layers):
            b = f"blk.{i}."
            h = normed(x, b + "attn_norm")
            q = turned(heads(linear(h, b + "attn_q"), b + "attn_q_norm", self.heads))
            k = turned(heads(linear(h, b + "attn_k"), b + "attn_k_norm", self.key_heads))
            v = heads(linear(h, b + "attn_v"), "", self.key_heads)
            mixed = []
            for head in range(self.heads):
                shared = head * self.key_heads // self.heads
                scores = q[:, head] @ k[:, shared].T / numpy.sqrt(self.size)
                scores[numpy.triu_indices(len(x), 1)] = -numpy.inf
                scores = numpy.exp(scores - scores.max(-1, keepdims=True))
                mixed.append(scores / scores.sum(-1, keepdims=True) @ v[:, shared])
            x = x + linear(numpy.concatenate(mixed, -1), b + "attn_output")
            h = normed(x, b + "ffn_norm")
            gate = linear(h, b + "ffn_gate")
            x = x + linear(gate / (1 + numpy.exp(-gate)) * linear(h, b + "ffn_up"), b + "ffn_down")
        x = normed(x, "output_norm")
        return linear(x, "output" if "output.weight" in self.tensors else "token_embd")


ALL_KINDS = {"token_embd": "Q6_K", "attn_q": "Q4_K", "attn_k": "Q5_K", "attn_v": "Q4_1", "attn_output": "Q5_0", "ffn_gate": "Q4_0",
             "ffn_up": "Q5_1", "ffn_down": "Q8_0"}

# The files of tests/data/models.
EXAMPLES = {
    "llama": lambda: Decoder("llama", ALL_KINDS, width=256, hidden=32, heads=2, key_heads=1, tied=True, vocabulary=16),
    "qwen2": lambda: Decoder("qwen2", "F16", layers=2, hidden=32, heads=2, key_heads=1, size=8, vocabulary=8),
    "qwen3": lambda: Decoder("qwen3", "Q8_0", hidden=32, heads=2, key_heads=1, vocabulary=8, frequencies=True),
}

if __name__ == "__main__":
    for name, example in EXAMPLES.items():
        example().write(pathlib.Path(sys.argv[1]) / f"{name}.gguf")
