"""Language models in GGUF files, against numpy."""

import pathlib

import numpy
import pytest

import tenon
from gguf_models import ALL_KINDS, BLOCKS, EXAMPLES, FLOATS, Decoder, file_bytes

MODELS = pathlib.Path(__file__).parents[1] / "data" / "models"


def run(net, decoder, tokens, pasts=None):
    """The logits, and the pasts of what comes after."""
    none = numpy.zeros((1, decoder.key_heads, 0, decoder.size), numpy.float32)
    pasts = pasts or [none] * (2 * decoder.layers)
    outputs = net(numpy.array([tokens]), *pasts)
    return numpy.asarray(outputs[0])[0], [numpy.asarray(each) for each in outputs[1:]]


def check(decoder, path):
    decoder.write(path)
    net = tenon.compile(str(path))
    tokens = numpy.random.RandomState(3).randint(0, len(decoder.tensors["token_embd.weight"].values), 11).tolist()
    want = decoder.logits(tokens)
    got, _ = run(net, decoder, tokens)
    assert abs(got - want).max() < 2e-6 * abs(want).max()
    assert want.std() > 0.1  # not all the same
    # A prompt, then token by token.
    got, pasts = run(net, decoder, tokens[:5])
    steps = [got]
    for token in tokens[5:]:
        got, pasts = run(net, decoder, [token], pasts)
        steps.append(got)
    assert abs(numpy.concatenate(steps) - want).max() < 2e-6 * abs(want).max()


@pytest.mark.parametrize("kind", [kind for kind in [*FLOATS, *BLOCKS] if not kind.endswith("K")])
def test_types(kind, tmp_path):
    check(Decoder("llama", kind, layers=2), tmp_path / "m.gguf")


@pytest.mark.parametrize("kind", [kind for kind in BLOCKS if kind.endswith("K")])
def test_long_blocks(kind, tmp_path):
    check(Decoder("llama", kind, width=256, hidden=256, heads=4, key_heads=4, size=64, vocabulary=8), tmp_path / "m.gguf")


@pytest.mark.parametrize("options", [
    {"tied": True}, {"rotated": 8}, {"key_heads": 1}, {"key_heads": 4}, {"size": 8}, {"frequencies": True},
    {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}], ids=str)
@pytest.mark.parametrize("architecture", ["llama", "qwen2", "qwen3"])
def test_architectures(architecture, options, tmp_path):
    check(Decoder(architecture, "F32" if options.get("size") == 8 else "Q8_0", **options), tmp_path / "m.gguf")


@pytest.mark.parametrize("name", EXAMPLES)
def test_examples(name, tmp_path):
    decoder = EXAMPLES[name]()
    check(decoder, tmp_path / "m.gguf")
    assert (MODELS / f"{name}.gguf").read_bytes() == (tmp_path / "m.gguf").read_bytes()


def test_bytes():
    decoder = EXAMPLES["qwen3"]()
    model = tenon.load(file_bytes(decoder.keys, decoder.tensors, version=2), name="model.gguf")
    assert [each.name for each in model.inputs] == ["input_ids", "past_key_values.0.key", "past_key_values.0.value"]
    assert [each.name for each in model.outputs] == ["logits", "present.0.key", "present.0.value"]


def test_kinds_are_all_in_one_example():
    assert {*ALL_KINDS.values()} == {*BLOCKS}
