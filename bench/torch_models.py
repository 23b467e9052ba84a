#!/usr/bin/env python3
"""torch_models — models of timm and transformers (random weights) through torch.compile(backend="tenon"): whether they agree with
eager PyTorch, and how fast they are beside eager PyTorch and Inductor.

usage: torch_models.py check [NAME...] [--whole] [--jobs N] [--threads N] [--into DIR] [--cpu SECONDS]
       torch_models.py time  [NAME...] [--threads N] [--into DIR] [--limit SECONDS]
       torch_models.py cold  [NAME...] [--threads N] [--into DIR]
       torch_models.py list

check runs each model in a process of its own, --jobs at once, for at most --cpu seconds of processor time; a model of a package that
is not installed is skipped, by name. Of transformers' models it takes two layers, as all are the same; --whole takes as many as time.
time has a process for each model, and all of them compile at the same time, Inductor with one thread in each. Once all have
compiled, one after the other has the machine to itself, and takes the medians of calls in turn (--rounds rounds). What has not
compiled when so much of --limit is over that the others can still be timed is ended.
cold takes the time from the first call to its result, with caches that are empty, one process after another.
What was measured is kept in DIR (build/torch_models) and not measured again. A result agrees where max|a-b| <= 1e-3 max|b|.
"""

from __future__ import annotations

import argparse
import concurrent.futures
import fcntl
import importlib.util
import json
import math
import multiprocessing
import os
import resource
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
TOLERANCE = 1e-3
ROUNDS, SECONDS = 3, 0.3
PEERS = ("eager", "inductor", "tenon")
SECONDS_OF_A_MODEL = 4  # that time takes for one, once it has compiled

# Of timm by their names, at the sizes of the images that they are made for.
TIMM = """
resnet18 resnet50 resnext50_32x4d wide_resnet50_2 seresnet50 resnest14d res2net50_26w_4s densenet121 vgg11_bn dla34 hrnet_w18_small
mobilenetv2_100 mobilenetv3_large_100 mobilenetv4_conv_small efficientnet_b0 efficientnetv2_rw_t mnasnet_100 fbnetc_100 ghostnet_100
regnetx_008 regnety_008 repvgg_a0 mobileone_s0 convnext_tiny convnextv2_atto convmixer_768_32 inception_v3 inception_next_tiny
xception41 nasnetalarge cspresnet50 darknet53 dpn68 ese_vovnet19b_dw gernet_s skresnet18 selecsls42b tinynet_a rexnet_100 hardcorenas_a
vit_tiny_patch16_224 vit_small_patch16_224 deit_tiny_patch16_224 beit_base_patch16_224 swin_tiny_patch4_window7_224
swinv2_tiny_window8_256 twins_svt_small pvt_v2_b0 cait_xxs24_224 crossvit_tiny_240 levit_128 mixer_s16_224 resmlp_12_224 gmlp_s16_224
poolformer_s12 coat_lite_tiny convit_tiny pit_ti_224 tnt_s_patch16_224 visformer_tiny mvitv2_tiny maxvit_tiny_rw_224 edgenext_xx_small
mobilevit_xxs fastvit_t8 efficientformer_l1 xcit_nano_12_p16_224 volo_d1_224 davit_tiny focalnet_tiny_srf hiera_tiny_224 nextvit_small
""".split()

# For tests of timm's own: a few small blocks of each kind.
TIMM_SMALL = """
test_byobnet test_coatnet test_convnext test_convnext2 test_convnext3 test_efficientnet test_efficientnet_evos test_efficientnet_gn
test_efficientnet_ln test_mambaout test_maxvit test_nfnet test_resnet test_vit test_vit2 test_vit3 test_vit4 test_vit_relpos
""".split()

# Of transformers: the class of the configuration, what is different from its defaults, and what the model takes.
_SMALL = {"num_hidden_layers": 4}
TRANSFORMERS: dict[str, tuple[str, dict, str]] = {
    "bert": ("BertConfig", {}, "ids"), "roberta": ("RobertaConfig", {}, "ids"), "distilbert": ("DistilBertConfig", {}, "ids"),
    "albert": ("AlbertConfig", {"hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}, "ids"),
    "electra": ("ElectraConfig", {}, "ids"), "mobilebert": ("MobileBertConfig", {}, "ids"), "mpnet": ("MPNetConfig", {}, "ids"),
    "deberta_v2": ("DebertaV2Config", {**_SMALL, "hidden_size": 768, "num_attention_heads": 12, "intermediate_size": 3072}, "ids"),
    "layoutlm": ("LayoutLMConfig", _SMALL, "ids"), "convbert": ("ConvBertConfig", _SMALL, "ids"), "fnet": ("FNetConfig", _SMALL, "ids"),
    "squeezebert": ("SqueezeBertConfig", _SMALL, "ids"), "ernie": ("ErnieConfig", _SMALL, "ids"), "nystromformer": ("NystromformerConfig", _SMALL, "ids"),
    "modernbert": ("ModernBertConfig", {"num_hidden_layers": 6, "vocab_size": 30000, "pad_token_id": 0}, "ids"), "xlnet": ("XLNetConfig", {"n_layer": 4, "d_model": 512, "n_head": 8}, "ids"),
    "gpt2": ("GPT2Config", {}, "ids"), "gpt_neo": ("GPTNeoConfig", {"hidden_size": 512, "num_layers": 4, "num_heads": 8, "attention_types": [[["global", "local"], 2]]}, "ids"),
    "gpt_neox": ("GPTNeoXConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}, "ids"),
    "gptj": ("GPTJConfig", {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 32}, "ids"), "opt": ("OPTConfig", _SMALL, "ids"),
    "bloom": ("BloomConfig", {"hidden_size": 512, "n_layer": 4, "n_head": 8}, "ids"), "codegen": ("CodeGenConfig", {"n_embd": 512, "n_layer": 4, "n_head": 8, "rotary_dim": 32}, "ids"),
    "llama": ("LlamaConfig", {"hidden_size": 768, "num_hidden_layers": 6, "num_attention_heads": 12, "num_key_value_heads": 4, "intermediate_size": 2048}, "ids"),
    "mistral": ("MistralConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1536}, "ids"),
    "qwen2": ("Qwen2Config", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1536}, "ids"),
    "qwen3": ("Qwen3Config", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 2, "intermediate_size": 1536, "head_dim": 64}, "ids"),
    "phi": ("PhiConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}, "ids"),
    "phi3": ("Phi3Config", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 1536, "pad_token_id": 0}, "ids"),
    "gemma": ("GemmaConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 1, "intermediate_size": 2048, "head_dim": 64, "vocab_size": 32000}, "ids"),
    "gemma2": ("Gemma2Config", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 4, "intermediate_size": 2048, "head_dim": 64, "vocab_size": 32000}, "ids"),
    "stablelm": ("StableLmConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "num_key_value_heads": 8, "intermediate_size": 1536}, "ids"),
    "falcon": ("FalconConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8}, "ids"),
    "olmo": ("OlmoConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 2048}, "ids"),
    "granite": ("GraniteConfig", {"hidden_size": 512, "num_hidden_layers": 4, "num_attention_heads": 8, "intermediate_size": 1536}, "ids"),
    "t5": ("T5Config", {}, "pair"), "bart": ("BartConfig", {"encoder_layers": 3, "decoder_layers": 3}, "pair"),
    "pegasus": ("PegasusConfig", {"encoder_layers": 3, "decoder_layers": 3}, "pair"), "marian": ("MarianConfig", {"encoder_layers": 3, "decoder_layers": 3, "d_model": 512, "decoder_start_token_id": 0, "pad_token_id": 0, "vocab_size": 32000}, "pair"),
    "m2m_100": ("M2M100Config", {"encoder_layers": 3, "decoder_layers": 3, "vocab_size": 32000}, "pair"),
    "vit": ("ViTConfig", _SMALL, "image"), "deit": ("DeiTConfig", _SMALL, "image"), "dinov2": ("Dinov2Config", _SMALL, "image"),
    "swin": ("SwinConfig", {}, "image"), "convnext": ("ConvNextConfig", {}, "image"), "resnet": ("ResNetConfig", {}, "image"),
    "segformer": ("SegformerConfig", {}, "image"), "mobilevit": ("MobileViTConfig", {"image_size": 256}, "image256"), "poolformer": ("PoolFormerConfig", {}, "image"),
    "regnet": ("RegNetConfig", {}, "image"), "levit": ("LevitConfig", {}, "image"), "cvt": ("CvtConfig", {}, "image"),
    "wav2vec2": ("Wav2Vec2Config", _SMALL, "audio"), "hubert": ("HubertConfig", _SMALL, "audio"),
    "mamba": ("MambaConfig", {"hidden_size": 256, "num_hidden_layers": 2}, "ids"), "clip_text": ("CLIPTextConfig", {"max_position_embeddings": 128}, "ids"),
    "clip_vision": ("CLIPVisionConfig", {"num_hidden_layers": 4}, "image"), "siglip_vision": ("SiglipVisionConfig", {"num_hidden_layers": 4}, "image"),
}  # fmt: skip

TIMED = """
timm/resnet18 timm/resnet50 timm/mobilenetv2_100 timm/mobilenetv3_large_100 timm/efficientnet_b0 timm/convnext_tiny timm/densenet121
timm/regnety_008 timm/vgg11_bn timm/inception_v3 timm/vit_tiny_patch16_224 timm/vit_small_patch16_224 timm/deit_tiny_patch16_224
timm/swin_tiny_patch4_window7_224 timm/mixer_s16_224 timm/poolformer_s12 timm/repvgg_a0 timm/mobilevit_xxs
hf/bert hf/distilbert hf/albert hf/electra hf/gpt2 hf/opt hf/llama hf/qwen2 hf/t5 hf/vit hf/segformer hf/modernbert
""".split()
COLD = ["timm/resnet50", "timm/vit_small_patch16_224", "hf/bert"]


# What configurations of transformers call the number of their layers.
DEPTHS = ("num_hidden_layers", "n_layer", "n_layers", "num_layers", "num_decoder_layers", "encoder_layers", "decoder_layers")


def names():
    return [f"hf/{each}" for each in TRANSFORMERS] + [f"timm/{each}" for each in TIMM_SMALL + TIMM]


def import_timm():
    """timm needs torchvision, of which it calls no operators; wheels for another build of PyTorch fail for lack of these two."""
    import torch

    try:
        import torchvision  # noqa: F401
    except RuntimeError:
        for operator in ("nms", "qnms"):
            torch.library.define(f"torchvision::{operator}", "(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
    import timm

    return timm


def import_packages():
    """All that takes long."""
    import tenon.torch  # noqa: F401
    import torch._dynamo
    import torch._functorch.aot_autograd  # noqa: F401

    if importlib.util.find_spec("timm"):
        import_timm()
    if importlib.util.find_spec("transformers"):
        import transformers  # noqa: F401


def make(name, layers=None):
    """A model, and what it is called with; where layers are given, one of transformers has so many."""
    import torch

    torch.manual_seed(0)
    package, _, model = name.partition("/")
    if package == "timm":
        module = import_timm().create_model(model, pretrained=False)
        return module.eval(), (torch.randn(1, *module.default_cfg["input_size"]),), {}
    import transformers

    config_class, changes, kind = TRANSFORMERS[model]
    if layers is not None and "attention_types" not in changes:
        known = getattr(transformers, config_class)().to_dict()
        changes = {**changes, **{depth: layers for depth in DEPTHS if isinstance(known.get(depth), int)}}
    config = getattr(transformers, config_class)(**changes)
    if hasattr(config, "use_cache"):
        config.use_cache = False
    config_name = config_class.removesuffix("Config")
    module_class = getattr(transformers, f"{config_name}Model")
    module = module_class(config).eval()
    ids = torch.randint(1, min(getattr(config, "vocab_size", 1000), 20000), (1, 128))
    if kind == "ids":
        return module, (), {"input_ids": ids}
    if kind == "pair":
        return module, (), {"input_ids": ids, "decoder_input_ids": ids[:, :64]}
    if kind == "audio":
        return module, (torch.randn(1, 16000),), {}
    size = 256 if kind == "image256" else getattr(config, "image_size", 224)
    size = size if isinstance(size, int) else 224
    return module, (torch.randn(1, 3, size, size),), {}


def tensors_of(result):
    import torch
    from torch.utils import _pytree

    if hasattr(result, "to_tuple"):
        result = result.to_tuple()
    return [each for each in _pytree.tree_leaves(result) if isinstance(each, torch.Tensor)]


def difference(actual, expected):
    """The largest, over the largest number expected; infinity where they cannot be compared."""
    import torch

    worst = 0.0
    if len(actual) != len(expected):
        return math.inf
    for one, other in zip(actual, expected):
        if one.shape != other.shape or one.dtype != other.dtype or not torch.equal(one.isnan(), other.isnan()):
            return math.inf
        one, other = one.double().nan_to_num(), other.double().nan_to_num()
        if other.numel():
            worst = max(worst, ((one - other).abs().max() / other.abs().max().clamp(min=1e-9)).item())
    return worst


def check(name, threads, layers):
    import torch
    from tenon.torch import backend, listening

    torch.set_num_threads(threads)
    module, args, kwargs = make(name, layers)
    graphs = []
    with torch.no_grad():
        expected = tensors_of(module(*args, **kwargs))
        start = time.perf_counter()
        with listening(graphs.append):
            actual = tensors_of(torch.compile(module, backend=backend, options={"threads": threads})(*args, **kwargs))
        cold = time.perf_counter() - start
    return {
        "difference": difference(actual, expected),
        "cold": cold,
        "graphs": len(graphs),
        "nodes": sum(each.nodes for each in graphs),
        "external": [f"{op}: {why}" for each in graphs for _, op, _, why in each.external],
        "fallback": [each.fallback for each in graphs if each.fallback],
    }


def compiled(module, peer, threads):
    import torch
    import torch._dynamo

    if peer == "inductor":
        return torch.compile(module)
    if peer == "nop":  # Dynamo and AOTAutograd, and nothing behind them
        return torch.compile(module, backend="aot_eager_decomp_partition")
    from tenon.torch import backend

    return torch.compile(module, backend=backend, options={"threads": threads})


def cold(name, peer, threads):
    import torch

    torch.set_num_threads(threads)
    module, args, kwargs = make(name)
    call = compiled(module, peer, threads)
    with torch.no_grad():
        start = time.perf_counter()
        call(*args, **kwargs)
        return {"cold": time.perf_counter() - start}


def seconds_of_calls(call):
    """A median."""
    times, end = [], time.perf_counter() + SECONDS
    while time.perf_counter() < end or len(times) < 5:
        start = time.perf_counter()
        call()
        times.append(time.perf_counter() - start)
    return statistics.median(times)


def measure(name, threads, rounds, meeting):
    """Compiles, says so in the folder `meeting`, waits until all are to be timed, and then until it is the only one."""
    import torch

    torch.set_num_threads(threads)
    module, args, kwargs = make(name)
    calls, results, ready = {}, {}, {}
    with torch.no_grad():
        for peer in PEERS:
            function = module if peer == "eager" else compiled(module, peer, threads)
            calls[peer] = lambda function=function: function(*args, **kwargs)
            start = time.perf_counter()
            results[peer] = tensors_of(calls[peer]())
            ready[peer] = time.perf_counter() - start
        differences = {peer: difference(results[peer], results["eager"]) for peer in PEERS[1:]}
        (meeting / f"{name.replace('/', '_')}.ready").touch()
        while not (meeting / "go").exists():
            time.sleep(0.2)
        with open(meeting / "lock", "w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            for call in calls.values():
                for _ in range(3):
                    call()
            medians = [{peer: seconds_of_calls(calls[peer]) for peer in PEERS} for _ in range(rounds)]
            return {
                "difference": differences["tenon"], "inductor_difference": differences["inductor"], "ready": ready,
                "median": {peer: statistics.median(each[peer] for each in medians) for peer in PEERS},
            }


def said_in(stdout, stderr, status):
    """The JSON that a process printed last, or why there is none."""
    try:
        return json.loads(stdout.splitlines()[-1])
    except (IndexError, ValueError):
        said = [line for line in stderr.splitlines() if line.strip()]
        errors = [line for line in said if "Error" in line]
        return {"error": (errors or said or [f"ended with status {status}"])[-1][:300]}


def in_process(words, limit, environment=None):
    try:
        done = subprocess.run([sys.executable, __file__, *words], capture_output=True, text=True, timeout=limit,
                              env={**os.environ, **(environment or {})})
        return said_in(done.stdout, done.stderr, done.returncode)
    except subprocess.TimeoutExpired:
        return {"error": f"takes more than {limit} s"}


def file_of(into, key):
    return into / (key.replace("/", "_") + ".json")


def kept(into, key):
    file = file_of(into, key)
    return json.loads(file.read_text()) if file.exists() else None


def keep(into, key, make_it):
    if (result := kept(into, key)) is None:
        result = make_it()
        file_of(into, key).write_text(json.dumps(result))
    return result


def check_into(path, name, threads, layers, cpu):
    """In a process that ends with it: writes what it found."""
    import traceback
    import warnings

    warnings.simplefilter("ignore")
    resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu + 5))
    with open(f"{path}.log", "w") as log:
        os.dup2(log.fileno(), 1)
        os.dup2(log.fileno(), 2)
        try:
            found = check(name, threads, layers)
        except Exception as error:
            traceback.print_exc(file=log)
            found = {"error": f"{type(error).__name__}: {error}"[:300]}
    path.write_text(json.dumps(found))


def check_in_process(context, path, name, threads, layers, cpu):
    process = context.Process(target=check_into, args=(path, name, threads, layers, cpu))
    process.start()
    process.join()
    if not path.exists():
        ended = f"takes more than {cpu} s of processor time" if process.exitcode == -signal.SIGXCPU else f"ended with status {process.exitcode}"
        path.write_text(json.dumps({"error": ended}))
    return json.loads(path.read_text())


def check_all(chosen, options):
    missing = [package for package, module in (("timm", "timm"), ("hf", "transformers")) if importlib.util.find_spec(module) is None]
    skipped = [name for name in chosen if name.split("/")[0] in missing]
    if skipped:
        print(f"skipped: {len(skipped)} models of {', '.join(missing)}, which is not installed")
    chosen = [name for name in chosen if name not in skipped]
    # Processes are copies of one that has imported all that takes long.
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload(["__main__"])
    layers = None if options.whole else 2
    wrong, start = 0, time.monotonic()
    with concurrent.futures.ThreadPoolExecutor(options.jobs) as pool:
        waiting = {}
        for name in chosen:
            key = f"check_whole_{name}" if options.whole else f"check_{name}"
            found = pool.submit(keep, options.into, key, lambda name=name, key=key: check_in_process(
                context, file_of(options.into, key), name, options.threads, layers, options.cpu))
            waiting[found] = name
        for future in concurrent.futures.as_completed(waiting):
            result, name = future.result(), waiting[future]
            bad = "error" in result or not result["difference"] <= TOLERANCE
            wrong += bad
            print(f"{name}: " + (result["error"] if "error" in result else
                  f"{'WRONG' if bad else 'ok'} {result['difference']:.1e}, {result['nodes']} nodes in {result['graphs']} graphs, cold {result['cold']:.1f} s"
                  + (f", external: {'; '.join(sorted(set(result['external'])))[:300]}" if result["external"] else "")
                  + (f", fallback: {result['fallback'][0][:200]}" if result["fallback"] else "")), flush=True)
    print(f"{len(chosen)} models in {time.monotonic() - start:.0f} s, {wrong} wrong or failed, {len(skipped)} skipped")
    return 1 if wrong else 0


def measure_together(chosen, options):
    """A process for each; their files in DIR have what they found. Where one compiles for too long, it has none."""
    end = time.monotonic() + options.limit
    with tempfile.TemporaryDirectory() as folder:
        meeting = Path(folder)
        environment = {**os.environ, "TORCHINDUCTOR_COMPILE_THREADS": "1", "TENON_CACHE": ""}
        running = {}
        for name in chosen:
            out, err = (open(meeting / f"{name.replace('/', '_')}.{kind}", "w+") for kind in ("out", "err"))
            words = ["_measure", name, str(options.threads), str(options.rounds), folder]
            running[name] = subprocess.Popen([sys.executable, __file__, *words], stdout=out, stderr=err, env=environment), out, err

        def waiting():
            return [name for name, (process, _, _) in running.items()
                    if process.poll() is None and not (meeting / f"{name.replace('/', '_')}.ready").exists()]

        while waiting() and time.monotonic() < end - SECONDS_OF_A_MODEL * (len(chosen) - len(waiting())):
            time.sleep(0.2)
        late = waiting()
        for name in late:
            running[name][0].kill()
        (meeting / "go").touch()
        for name, (process, out, err) in running.items():
            try:
                process.wait(max(end + 30 - time.monotonic(), 1))
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
            for file in (out, err):
                file.seek(0)
            if name not in late:
                file_of(options.into, f"time_{name}").write_text(json.dumps(said_in(out.read(), err.read(), process.returncode)))


def time_all(chosen, options):
    measure_together([name for name in chosen if kept(options.into, f"time_{name}") is None], options)
    rows = []
    print("| model | eager ms | Inductor ms | Tenon ms | over eager | over Inductor | difference |\n|---|---|---|---|---|---|---|")
    for name in chosen:
        result = kept(options.into, f"time_{name}") or {"error": "no time to compile it"}
        if "error" in result:
            print(f"| {name} | {result['error']} |")
            continue
        eager, inductor, ours = (result["median"][peer] * 1e3 for peer in PEERS)
        rows.append((eager / ours, inductor / ours))
        print(f"| {name} | {eager:.2f} | {inductor:.2f} | {ours:.2f} | {eager / ours:.2f} | {inductor / ours:.2f} | {result['difference']:.1e} |")
    if rows:
        mean = [math.exp(statistics.fmean(math.log(row[i]) for row in rows)) for i in range(2)]
        print(f"{len(rows)} models: geometric mean {mean[0]:.2f} over eager, {mean[1]:.2f} over Inductor, smallest {min(row[1] for row in rows):.2f}")
    return 0


def cold_all(chosen, options):
    print("| model | Dynamo and AOTAutograd s | Inductor s | Tenon s | Tenon, from its cache s |\n|---|---|---|---|---|")
    for name in chosen:
        with tempfile.TemporaryDirectory() as folder:
            caches = {"TORCHINDUCTOR_CACHE_DIR": f"{folder}/inductor", "TENON_CACHE": f"{folder}/tenon"}
            found = [
                keep(options.into, f"cold_{kind}_{name}", lambda peer=peer: in_process(["_cold", name, peer, str(options.threads)], 300, caches))
                for kind, peer in (("nop", "nop"), ("inductor", "inductor"), ("tenon", "tenon"), ("cached", "tenon"))
            ]
        print(f"| {name} | " + " | ".join(each.get("error") or f"{each['cold']:.2f}" for each in found) + " |", flush=True)
    return 0


def main():
    if len(sys.argv) > 1 and sys.argv[1].startswith("_"):
        import warnings

        warnings.simplefilter("ignore")
        name, words = sys.argv[2], sys.argv[3:]
        functions = {
            "_cold": lambda: cold(name, words[0], int(words[1])),
            "_measure": lambda: measure(name, int(words[0]), int(words[1]), Path(words[2])),
        }
        print(json.dumps(functions[sys.argv[1]]()))
        return 0
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("what", choices=["check", "time", "cold", "list"])
    parser.add_argument("names", nargs="*")
    parser.add_argument("--jobs", type=int, default=max((os.cpu_count() or 2) // 2, 1))
    parser.add_argument("--threads", type=int, default=0)
    parser.add_argument("--whole", action="store_true")
    parser.add_argument("--cpu", type=int, default=400)
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--limit", type=float, default=3600)
    parser.add_argument("--into", type=Path, default=ROOT / "build/torch_models")
    options = parser.parse_args()
    if options.what == "list":
        print("\n".join(names()))
        return 0
    options.into.mkdir(parents=True, exist_ok=True)
    if options.what == "check":
        options.threads = options.threads or 2
        return check_all(options.names or names(), options)
    options.threads = options.threads or os.cpu_count() or 1
    if options.what == "cold":
        return cold_all(options.names or COLD, options)
    return time_all(options.names or TIMED, options)


if __name__ == "__mp_main__":
    import_packages()
if __name__ == "__main__":
    sys.exit(main())
