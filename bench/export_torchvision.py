#!/usr/bin/python3
"""export_torchvision.py — torchvision's models as ONNX files: export_torchvision.py FOLDER [MODEL...]

The weights are random, the same each time, and the batch is 1. It needs Debian's python3-torchvision, which the
system's own Python finds. A model whose file is there already is left alone.
"""
import os
import sys
import warnings

import torch
import torchvision

# How large the images are: each model's own choice.
SIZES = {
    "resnet18": 224,
    "resnet50": 224,
    "vgg16": 224,
    "mobilenet_v2": 224,
    "mobilenet_v3_large": 224,
    "efficientnet_b0": 224,
    "densenet121": 224,
    "squeezenet1_1": 224,
    "shufflenet_v2_x1_0": 224,
    "inception_v3": 299,
    "convnext_tiny": 224,
    "swin_t": 224,
    "vit_b_16": 224,
    "regnet_y_400mf": 224,
}


def randomise(model):
    """Batch norms that were never trained would do nothing, a head of zeros would forget all that comes before it, and layer
    scales of 1e-6 would hide whole blocks."""
    for parameter in model.parameters():
        if parameter.dim() > 1 and not parameter.any():
            parameter.data.normal_(0, 0.02)
    for module in model.modules():
        if isinstance(module, torch.nn.BatchNorm2d):
            module.running_mean.normal_(0, 0.1)
            module.running_var.uniform_(0.8, 1.2)
            module.weight.data.uniform_(0.8, 1.2)
            module.bias.data.normal_(0, 0.1)
        if isinstance(getattr(module, "layer_scale", None), torch.nn.Parameter):
            module.layer_scale.data.uniform_(0.1, 0.3)


def export(name, path):
    torch.manual_seed(1)
    options = {"init_weights": True} if name == "inception_v3" else {}
    model = torchvision.models.get_model(name, weights=None, **options).eval()
    randomise(model)
    image = torch.rand(1, 3, SIZES[name], SIZES[name])
    torch.onnx.export(model, image, path + ".part", opset_version=16, input_names=["image"], output_names=["scores"])
    os.replace(path + ".part", path)


def main():
    if len(sys.argv) < 2:
        sys.exit("export_torchvision.py FOLDER [MODEL...]")
    folder, names = sys.argv[1], sys.argv[2:] or list(SIZES)
    os.makedirs(folder, exist_ok=True)
    warnings.filterwarnings("ignore")  # of the tracer, about sizes that are fixed here
    failed = False
    for name in names:
        path = os.path.join(folder, name + ".onnx")
        if os.path.exists(path):
            continue
        try:
            export(name, path)
            print(f"{name}: {os.path.getsize(path) / 2**20:.1f} MiB", flush=True)
        except Exception as error:  # one that cannot be exported is no reason to leave out the others
            failed = True
            print(f"{name}: {str(error).splitlines()[0]}", file=sys.stderr, flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
