#!/usr/bin/env python3
"""export_sweep.py — exports small models of torchvision, timm and transformers, with inputs and what eager PyTorch computes.

usage: export_sweep.py INTO [--only REGEX] [--jobs N] [--seconds S]

Writes INTO/NAME.pt2 and INTO/NAME.npz (input_K, output_K) for each model, and INTO/index.json, which says for each what
became of it. A library that is not installed is skipped, a model that is already there is left as it is.
tools/run_sweep runs what this wrote through tenon. Needs PyTorch 2.11.

The weights are random, but a large one repeats a short block of numbers: so it deflates to next to nothing, and the models
can be carried elsewhere.
"""

import argparse
import json
import multiprocessing
import re
import sys
import time
import traceback
import zipfile
from pathlib import Path

import numpy
import torch
from torch import nn

LARGEST_FILE = 1_400_000  # bytes of one archive
LARGEST_STORED = 300_000  # an archive beyond this is deflated
BLOCK = 1009  # prime, so that the rows of a repeating weight differ
SECONDS_PER_MODEL = 170

cases = {}


def case(name):
    """Registers a function that gives (model, inputs) or (model, inputs, dynamic shapes)."""

    def register(make):
        assert name not in cases, name
        cases[name] = make
        return make

    return register


def image(size, channels=3, batch=1):
    return torch.randn(batch, channels, size, size)


# Plain modules of torch.nn.


class Recurrent(nn.Module):
    def __init__(self, kind, **options):
        super().__init__()
        self.layer = kind(12, 16, batch_first=True, **options)

    def forward(self, x):
        return self.layer(x)[0]


class Residual(nn.Module):
    """Sizes that are computed from symbolic ones: halves, products, a slice up to a size less one."""

    def __init__(self):
        super().__init__()
        self.embed = nn.Embedding(50, 16)
        self.mix = nn.Linear(32, 16)

    def forward(self, tokens):
        x = self.embed(tokens)
        batch, length, width = x.shape
        pairs = x.reshape(batch, length // 2, 2 * width)
        y = self.mix(pairs)
        shifted = torch.cat([y[:, 1:], y[:, :1]], dim=1)
        positions = torch.arange(y.shape[1], dtype=y.dtype)[None, :, None]
        return (y + shifted * positions).flatten(0, 1)[: batch * (length // 2) - 1]


def plain_cases():
    case("nn_lstm")(lambda: (Recurrent(nn.LSTM, num_layers=2, bidirectional=True), [torch.randn(2, 7, 12)]))
    case("nn_gru")(lambda: (Recurrent(nn.GRU), [torch.randn(2, 7, 12)]))
    case("nn_rnn")(lambda: (Recurrent(nn.RNN), [torch.randn(2, 7, 12)]))
    case("nn_transformer")(
        lambda: (nn.Transformer(16, 2, 1, 1, 32, batch_first=True), [torch.randn(2, 5, 16), torch.randn(2, 6, 16)]))
    case("nn_symbolic_sizes")(
        lambda: (Residual(), [torch.randint(0, 50, (2, 8))],
                 [{0: torch.export.Dim("batch", min=1, max=64), 1: 2 * torch.export.Dim("half", min=2, max=64)}]))
    case("nn_embedding_bag")(lambda: (nn.EmbeddingBag(20, 8, mode="mean"), [torch.randint(0, 20, (3, 4))]))


def torchvision_cases():
    import torchvision.models as models

    names = """resnet18 mobilenet_v2 mobilenet_v3_small squeezenet1_1 shufflenet_v2_x0_5 efficientnet_b0
    regnet_y_400mf regnet_x_400mf mnasnet0_5 densenet121""".split()
    for name in names:
        case(f"torchvision_{name}")(
            lambda name=name: (models.get_model(name, weights=None, num_classes=10), [image(64)]))
    case("torchvision_resnet18_dynamic")(
        lambda: (models.resnet18(weights=None, num_classes=10), [image(64, batch=2)],
                 [{0: torch.export.Dim("batch", min=1, max=256)}]))
    case("torchvision_googlenet")(
        lambda: (models.googlenet(weights=None, num_classes=10, aux_logits=False, init_weights=False), [image(64)]))
    case("torchvision_vit")(
        lambda: (models.VisionTransformer(32, 8, 2, 2, 32, 64, num_classes=10), [image(32)]))

    def swin(block):
        return models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10, block=block)

    case("torchvision_swin")(lambda: (swin(models.swin_transformer.SwinTransformerBlock), [image(64)]))

    def swin_v2():
        module = models.swin_transformer
        return models.SwinTransformer([4, 4], 24, [2, 2], [2, 4], [4, 4], num_classes=10,
                                      block=module.SwinTransformerBlockV2, downsample_layer=module.PatchMergingV2)

    case("torchvision_swin_v2")(lambda: (swin_v2(), [image(64)]))
    case("torchvision_maxvit")(
        lambda: (models.MaxVit((64, 64), 16, 2, [16, 32], [1, 1], 8, 0.0, num_classes=10), [image(64)]))

    def convnext():
        block = models.convnext.CNBlockConfig
        return models.ConvNeXt([block(16, 32, 1), block(32, 64, 2), block(64, None, 1)], num_classes=10)

    case("torchvision_convnext")(lambda: (convnext(), [image(64)]))
    for name in ["lraspp_mobilenet_v3_large", "deeplabv3_mobilenet_v3_large"]:
        case(f"torchvision_{name}")(
            lambda name=name: (models.get_model(name, weights=None, weights_backbone=None, num_classes=5), [image(64)]))
    case("torchvision_r3d")(
        lambda: (models.video.resnet.VideoResNet(models.video.resnet.BasicBlock, [models.video.resnet.Conv3DSimple] * 4,
                                                 [1, 1, 1, 1], models.video.resnet.BasicStem, num_classes=10),
                 [torch.randn(1, 3, 4, 32, 32)]))


def timm_cases():
    import timm

    names = """resnet10t mobilenetv3_small_050 mobilenetv2_035 tf_efficientnetv2_b0 convnext_atto convnextv2_atto
    gmlp_ti16_224 resmlp_12_224 mixer_s32_224 poolformer_s12 edgenext_xx_small mobilevit_xxs mobilevitv2_050
    efficientformer_l1 levit_128s pit_ti_224 cait_xxs24_224 xcit_nano_12_p16_224 coat_lite_tiny pvt_v2_b0 ghostnet_050
    lcnet_035 tinynet_e regnety_002 repvgg_a0 rexnet_100 dla46_c hrnet_w18_small selecsls42 skresnet18 resnest14d
    nf_regnet_b0 ese_vovnet19b_dw visformer_tiny fastvit_t8 mobileone_s0 eva02_tiny_patch14_224 tiny_vit_5m_224
    efficientvit_b0 efficientvit_m0 repvit_m0_9 starnet_s1 mambaout_femto vit_tiny_patch16_224 deit_tiny_patch16_224
    beit_base_patch16_224 swin_tiny_patch4_window7_224 mobilenetv4_conv_small""".split()
    smaller = {  # the arguments that keep large ones small
        "cait_xxs24_224": dict(depth=2), "xcit_nano_12_p16_224": dict(depth=2), "eva02_tiny_patch14_224": dict(depth=2),
        "vit_tiny_patch16_224": dict(depth=2, img_size=64), "deit_tiny_patch16_224": dict(depth=2, img_size=64),
        "beit_base_patch16_224": dict(depth=2, img_size=64, embed_dim=96, num_heads=3),
        "swin_tiny_patch4_window7_224": dict(depths=(2, 2), embed_dim=24, num_heads=(2, 4), img_size=56),
    }

    def make(name):
        model = timm.create_model(name, pretrained=False, num_classes=10, **smaller.get(name, {}))
        fixed = isinstance(getattr(model, "patch_embed", None), nn.Module) and hasattr(model.patch_embed, "img_size")
        size = model.patch_embed.img_size if fixed else None
        if size is None:
            size = 224 if re.search(r"_224$|levit|efficientformer|visformer|tiny_vit|efficientvit_m|coat_", name) else 64
        return model, [image(size if isinstance(size, int) else size[0])]

    for name in names:
        case(f"timm_{name}")(lambda name=name: make(name))


class FirstOutput(nn.Module):
    """A model of transformers, called by name, of which the first result counts."""

    def __init__(self, model, names, **options):
        super().__init__()
        self.model = model
        self.names = names
        self.options = options

    def forward(self, *inputs):
        return self.model(**dict(zip(self.names, inputs)), return_dict=False, **self.options)[0]


def transformers_cases():
    import transformers as hf

    tokens = lambda length=9: torch.randint(3, 90, (2, length))
    narrow = dict(vocab_size=96, hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4,
                  max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)

    def register(name, model, config, names, inputs, **options):
        def make():
            made = getattr(hf, model)(getattr(hf, config[0])(**config[1]))
            return FirstOutput(made, names, **options), inputs()

        case(f"transformers_{name}")(make)

    # Encoders, with a mask that hides a part of the second row.
    def masked():
        mask = torch.ones(2, 9, dtype=torch.int64)
        mask[1, 6:] = 0
        return [tokens(), mask]

    def encoder(name, model, config, **changes):
        register(name, model, (config, {**narrow, **changes}), ["input_ids", "attention_mask"], masked)

    encoder("bert", "BertModel", "BertConfig")
    encoder("bert_eager", "BertForSequenceClassification", "BertConfig", attn_implementation="eager")
    encoder("roberta", "RobertaForMaskedLM", "RobertaConfig")
    encoder("electra", "ElectraModel", "ElectraConfig", embedding_size=16)
    encoder("albert", "AlbertModel", "AlbertConfig", embedding_size=16)
    encoder("distilbert", "DistilBertModel", "DistilBertConfig", dim=32, hidden_dim=48, n_layers=2, n_heads=4)
    encoder("deberta_v2", "DebertaV2Model", "DebertaV2Config", relative_attention=True, pos_att_type=["c2p", "p2c"])
    encoder("squeezebert", "SqueezeBertModel", "SqueezeBertConfig", embedding_size=32)
    encoder("mobilebert", "MobileBertModel", "MobileBertConfig", embedding_size=16, intra_bottleneck_size=16,
            true_hidden_size=16)
    encoder("modernbert", "ModernBertModel", "ModernBertConfig")
    register("fnet", "FNetModel", ("FNetConfig", {**narrow, "use_tpu_fourier_optimizations": False}), ["input_ids"],
             lambda: [tokens()])
    register("xlnet", "XLNetModel", ("XLNetConfig", dict(vocab_size=96, d_model=32, n_layer=2, n_head=4, d_inner=48)),
             ["input_ids"], lambda: [tokens()])

    # Decoders.
    def decoder(name, model, config, **changes):
        register(name, model, (config, {**narrow, **changes}), ["input_ids"], lambda: [tokens()], use_cache=False)

    grouped = dict(num_key_value_heads=2)
    decoder("llama", "LlamaForCausalLM", "LlamaConfig", **grouped)
    decoder("mistral", "MistralForCausalLM", "MistralConfig", **grouped, sliding_window=4)
    decoder("qwen2", "Qwen2ForCausalLM", "Qwen2Config", **grouped)
    decoder("qwen3", "Qwen3ForCausalLM", "Qwen3Config", **grouped, head_dim=8)
    decoder("gemma", "GemmaForCausalLM", "GemmaConfig", **grouped, head_dim=8)
    decoder("gemma2", "Gemma2ForCausalLM", "Gemma2Config", **grouped, head_dim=8, sliding_window=4)
    decoder("phi", "PhiForCausalLM", "PhiConfig")
    decoder("phi3", "Phi3ForCausalLM", "Phi3Config", **grouped)
    decoder("stablelm", "StableLmForCausalLM", "StableLmConfig", **grouped)
    decoder("olmo2", "Olmo2ForCausalLM", "Olmo2Config", **grouped)
    decoder("granite", "GraniteForCausalLM", "GraniteConfig", **grouped)
    decoder("gpt_neox", "GPTNeoXForCausalLM", "GPTNeoXConfig")
    decoder("falcon", "FalconForCausalLM", "FalconConfig")
    decoder("bloom", "BloomForCausalLM", "BloomConfig", n_layer=2, n_head=4)
    decoder("opt", "OPTForCausalLM", "OPTConfig", ffn_dim=48, word_embed_proj_dim=32)
    decoder("gpt2", "GPT2LMHeadModel", "GPT2Config", n_embd=32, n_layer=2, n_head=4, n_positions=64)
    decoder("gpt_neo", "GPTNeoForCausalLM", "GPTNeoConfig", num_layers=2, num_heads=4,
            attention_types=[[["global", "local"], 1]])
    decoder("mamba", "MambaForCausalLM", "MambaConfig", state_size=4)

    # From sequence to sequence.
    def translator(name, model, config, **changes):
        register(name, model, (config, changes), ["input_ids", "decoder_input_ids"], lambda: [tokens(), tokens(5)],
                 use_cache=False)

    layers = dict(vocab_size=96, d_model=32, encoder_layers=1, decoder_layers=1, encoder_ffn_dim=48, decoder_ffn_dim=48,
                  encoder_attention_heads=4, decoder_attention_heads=4, max_position_embeddings=64, pad_token_id=0,
                  decoder_start_token_id=1)
    translator("t5", "T5Model", "T5Config", vocab_size=96, d_model=32, d_kv=8, d_ff=48, num_layers=2, num_heads=4)
    translator("bart", "BartModel", "BartConfig", **layers)
    translator("marian", "MarianModel", "MarianConfig", **layers)
    register("whisper", "WhisperModel", ("WhisperConfig", {**layers, "max_source_positions": 20, "num_mel_bins": 8}),
             ["input_features", "decoder_input_ids"], lambda: [torch.randn(1, 8, 40), tokens(5)[:1]], use_cache=False)

    # Images and sound.
    def vision(name, model, config, size=32, **changes):
        register(name, model, (config, changes), ["pixel_values"], lambda: [image(size)])

    patches = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4, image_size=32,
                   patch_size=8)
    vision("vit", "ViTModel", "ViTConfig", **patches)
    vision("deit", "DeiTModel", "DeiTConfig", **patches)
    vision("dinov2", "Dinov2Model", "Dinov2Config", **patches)
    vision("siglip_vision", "SiglipVisionModel", "SiglipVisionConfig", **patches)
    vision("clip_vision", "CLIPVisionModel", "CLIPVisionConfig", **patches)
    vision("segformer", "SegformerForSemanticSegmentation", "SegformerConfig", 64, depths=[1, 1, 1, 1],
           hidden_sizes=[8, 16, 32, 64], num_attention_heads=[1, 2, 4, 8], decoder_hidden_size=16)
    vision("convnextv2", "ConvNextV2Model", "ConvNextV2Config", hidden_sizes=[8, 16, 24, 32], depths=[1, 1, 1, 1])
    vision("resnet", "ResNetModel", "ResNetConfig", 64, embedding_size=16, hidden_sizes=[16, 32], depths=[1, 1])
    vision("swin", "SwinModel", "SwinConfig", 64, image_size=64, embed_dim=16, depths=[2, 2], num_heads=[2, 4],
           window_size=4)
    register("clip_text", "CLIPTextModel", ("CLIPTextConfig", narrow), ["input_ids"], lambda: [tokens()])
    register("wav2vec2", "Wav2Vec2Model",
             ("Wav2Vec2Config", {**narrow, "conv_dim": [16, 16], "conv_stride": [5, 2], "conv_kernel": [10, 3],
                                 "num_conv_pos_embeddings": 8, "num_conv_pos_embedding_groups": 4}),
             ["input_values"], lambda: [torch.randn(1, 800)])

    def dynamic():
        model = hf.BertModel(hf.BertConfig(**narrow))
        sizes = {0: torch.export.Dim("batch", min=2, max=16), 1: torch.export.Dim("length", min=2, max=64)}
        return FirstOutput(model, ["input_ids", "attention_mask"]), masked(), [sizes, dict(sizes)]

    case("transformers_bert_dynamic")(dynamic)


@torch.no_grad()
def draw_weights(model):
    """Makes large weights repeat a block, and gives those that all models begin with alike a part of chance."""
    for parameter in model.parameters():
        if not parameter.is_floating_point():
            continue
        flat = parameter.reshape(-1)
        if flat.numel() and (flat == flat[0]).all():
            flat = flat + 0.1 * torch.randn(min(flat.numel(), BLOCK)).repeat(-(-flat.numel() // BLOCK))[: flat.numel()]
        elif flat.numel() > 4 * BLOCK:
            flat = flat[:BLOCK].repeat(-(-flat.numel() // BLOCK))[: flat.numel()]
        parameter.copy_(flat.reshape(parameter.shape))
    for name, buffer in model.named_buffers():
        if name.endswith("running_mean"):
            buffer.add_(0.1 * torch.randn_like(buffer))
        elif name.endswith("running_var"):
            buffer.mul_(0.5 + torch.rand_like(buffer))


def flatten(result):
    if isinstance(result, torch.Tensor):
        return [result]
    values = result.values() if isinstance(result, dict) else result
    return [tensor for value in values for tensor in flatten(value)]


def repack(path):
    """Leaves out the sample inputs, and deflates what would be large."""
    with zipfile.ZipFile(path) as archive:
        entries = {name: archive.read(name) for name in archive.namelist() if "/sample_inputs/" not in name}
    if sum(map(len, entries.values())) <= LARGEST_STORED:
        return
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for name, content in entries.items():
            archive.writestr(name, content)


def export(name, into):
    """Exports one model; gives what index.json says of it."""
    torch.set_num_threads(1)
    torch.manual_seed(0)
    model, inputs, *rest = cases[name]()
    model.eval()
    draw_weights(model)
    with torch.no_grad():
        outputs = flatten(model(*inputs))
    dynamic_shapes = None
    if rest:
        sizes = rest[0]
        dynamic_shapes = (tuple(sizes),) if isinstance(model, FirstOutput) else tuple(sizes)
    program = torch.export.export(model, tuple(inputs), dynamic_shapes=dynamic_shapes, strict=False)

    path = into / f"{name}.pt2"
    partial = into / f"{name}.partial.pt2"
    torch.export.save(program, partial)
    repack(partial)
    size = partial.stat().st_size
    ops = sorted({str(node.target) for node in program.graph.nodes if node.op == "call_function"})
    nodes = sum(node.op == "call_function" for node in program.graph.nodes)
    entry = {"bytes": size, "nodes": nodes, "ops": ops}
    if size > LARGEST_FILE:
        partial.unlink()
        return {"status": "too large", **entry}
    arrays = {f"input_{index}": value.numpy() for index, value in enumerate(inputs)}
    arrays.update({f"output_{index}": value.detach().numpy() for index, value in enumerate(outputs)})
    numpy.savez_compressed(into / f"{name}.npz", **arrays)
    partial.rename(path)
    return {"status": "exported", **entry}


def export_alone(name, into, answers):
    try:
        answers.put((name, export(name, into)))
    except Exception as error:  # whatever a model throws is what is said of it
        traceback.print_exc()
        answers.put((name, {"status": "failed", "why": f"{type(error).__name__}: {str(error)[:600]}"}))


def export_all(names, into, jobs, seconds):
    """Exports each model in a process of its own, several at once, until the time is over."""
    context = multiprocessing.get_context("fork")
    answers = context.Queue()
    end = time.monotonic() + seconds
    waiting, running, index = list(names), {}, {}
    while waiting or running:
        now = time.monotonic()
        while waiting and len(running) < jobs and now < end:
            name = waiting.pop(0)
            process = context.Process(target=export_alone, args=(name, into, answers))
            process.start()
            running[name] = (process, now)
        if now >= end and waiting:
            index.update({name: {"status": "no time left"} for name in waiting})
            waiting = []
        try:
            name, entry = answers.get(timeout=0.5)
            index[name] = entry
            print(f"{name}: {entry['status']} {entry.get('bytes', '')} {entry.get('why', '')}", flush=True)
        except Exception:  # nothing was answered within the moment
            pass
        for name, (process, started) in list(running.items()):
            if process.is_alive() and (now - started > SECONDS_PER_MODEL or now > end + 20):
                process.kill()
                index[name] = {"status": "failed", "why": "took too long"}
            if not process.is_alive():
                process.join()
                del running[name]
    while not answers.empty():
        name, entry = answers.get()
        index[name] = entry
    return index


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("into", type=Path)
    parser.add_argument("--only", default="", metavar="REGEX", help="the models whose names match")
    parser.add_argument("--jobs", type=int, default=8, help="models at once")
    parser.add_argument("--seconds", type=float, default=1e9, help="begin no model after this time")
    arguments = parser.parse_args()
    arguments.into.mkdir(parents=True, exist_ok=True)

    torch.set_num_threads(1)
    index = {}
    for family in [plain_cases, torchvision_cases, timm_cases, transformers_cases]:
        try:
            family()
        except ImportError as error:
            print(f"{family.__name__}: skipped, {error}", flush=True)
    names = [name for name in cases
             if re.search(arguments.only, name) and not (arguments.into / f"{name}.pt2").exists()]
    index = export_all(names, arguments.into, arguments.jobs, arguments.seconds)
    path = arguments.into / "index.json"
    if path.exists():
        index = {**json.loads(path.read_text()), **index}
    index["torch"] = {"status": torch.__version__}
    path.write_text(json.dumps(index, indent=1, sort_keys=True))
    exported = sum(entry["status"] == "exported" for entry in index.values())
    print(f"{exported} exported, {len(index) - 1 - exported} not")
    return 0


if __name__ == "__main__":
    sys.exit(main())
