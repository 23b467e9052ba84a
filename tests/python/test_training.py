"""Steps of training, compared with PyTorch's."""

import math
import subprocess
import sys

import numpy
import onnx
import pytest

import tenon

torch = pytest.importorskip("torch")

STEPS = 20


class Mlp(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, 16), torch.nn.Tanh(), torch.nn.Linear(16, 5))

    def forward(self, x):
        return self.layers(x)


class ConvNet(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.first = torch.nn.Conv2d(1, 8, 3, padding=1)
        self.second = torch.nn.Conv2d(8, 16, 3, padding=1)
        self.last = torch.nn.Linear(16 * 4, 4)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.first(x)), 2)
        x = torch.nn.functional.max_pool2d(torch.relu(self.second(x)), 2)
        return self.last(x.flatten(1))


def command(*arguments, status=0):
    result = subprocess.run([sys.executable, "-m", "tenon", *map(str, arguments)], capture_output=True, text=True,
                            timeout=1800, check=False)
    assert result.returncode == status, result.stdout + result.stderr
    return result.stdout if status == 0 else result.stderr


def export(module, x, path):
    """An ONNX file whose weights have the names of the module's."""
    torch.onnx.export(module, (x,), path, input_names=["x"], output_names=["y"], dynamic_axes={"x": {0: "batch"}},
                      opset_version=17, do_constant_folding=False, dynamo=False)


class Step:
    """A step as `tenon train-step` writes it, with its state."""

    def __init__(self, folder, module, x, *options):
        export(module, x, folder / "model.onnx")
        command("train-step", folder / "model.onnx", "--dim", f"batch={len(x)}", *options, "-o", folder / "step.onnx",
                "--state", folder / "state.npz")
        model = tenon.load(folder / "step.onnx")
        self.state = dict(numpy.load(folder / "state.npz"))
        self.program = model.compile()
        self.outputs = [output.name for output in model.outputs]

    def __call__(self, x, target):
        inputs = {"x": x.numpy(), "target": target.numpy(), **self.state}
        results = dict(zip(self.outputs, self.program(*(inputs[each.name] for each in self.program.inputs))))
        self.state = {name: numpy.array(results["next_" + name]) for name in self.state}
        return float(results["loss"])


def examples(dtype, count=STEPS, batch=12):
    generator = torch.Generator().manual_seed(1)
    return [(torch.randn(batch, 6, generator=generator, dtype=dtype),
             torch.randint(0, 5, (batch,), generator=generator)) for _ in range(count)]


SGD = torch.optim.SGD
OPTIMIZERS = {
    "sgd": (["sgd", "--learning-rate", 0.1], lambda p: SGD(p, 0.1)),
    "decay": (["sgd", "--learning-rate", 0.1, "--weight-decay", 0.01], lambda p: SGD(p, 0.1, weight_decay=0.01)),
    "momentum": (["sgd", "--learning-rate", 0.1, "--momentum", 0.9, "--dampening", 0.3],
                 lambda p: SGD(p, 0.1, momentum=0.9, dampening=0.3)),
    "nesterov": (["sgd", "--learning-rate", 0.1, "--momentum", 0.9, "--nesterov", "--weight-decay", 0.01],
                 lambda p: SGD(p, 0.1, momentum=0.9, nesterov=True, weight_decay=0.01)),
    "adam": (["adam", "--learning-rate", 0.01], lambda p: torch.optim.Adam(p, 0.01)),
    "adam with decay": (["adam", "--weight-decay", 0.1, "--beta1", 0.8, "--beta2", 0.99, "--epsilon", 1e-6],
                        lambda p: torch.optim.Adam(p, weight_decay=0.1, betas=(0.8, 0.99), eps=1e-6)),
    "adamw": (["adamw", "--learning-rate", 0.01], lambda p: torch.optim.AdamW(p, 0.01)),
    "adagrad": (["adagrad"], lambda p: torch.optim.Adagrad(p)),
}


def train(module, optimizer, batches, loss=torch.nn.functional.cross_entropy, schedule=None, clip=None):
    losses = []
    for x, target in batches:
        optimizer.zero_grad()
        value = loss(module(x), target)
        value.backward()
        if clip:
            torch.nn.utils.clip_grad_norm_(module.parameters(), clip)
        optimizer.step()
        if schedule:
            schedule.step()
        losses.append(value.item())
    return losses


def assert_same_weights(step, module, tolerance):
    for name, parameter in module.named_parameters():
        numpy.testing.assert_allclose(step.state[name], parameter.detach().numpy(), rtol=0, atol=tolerance,
                                      err_msg=name)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_trajectories_are_those_of_pytorch(name, tmp_path):
    options, make = OPTIMIZERS[name]
    torch.manual_seed(0)
    module = Mlp().double()
    batches = examples(torch.float64)
    step = Step(tmp_path, module, batches[0][0], "--loss", "cross_entropy", "--optimizer", *options)
    losses = [step(*batch) for batch in batches]
    wanted = train(module, make(module.parameters()), batches)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-6)
    assert_same_weights(step, module, 1e-6)
    assert step.state["step"] == STEPS


@pytest.mark.parametrize("name", ["sgd", "nesterov", "adam", "adamw"])
def test_losses_in_f32_are_those_of_pytorch(name, tmp_path):
    options, make = OPTIMIZERS[name]
    torch.manual_seed(0)
    module = Mlp()
    batches = examples(torch.float32)
    step = Step(tmp_path, module, batches[0][0], "--loss", "cross_entropy", "--optimizer", *options)
    losses = [step(*batch) for batch in batches]
    numpy.testing.assert_allclose(losses, train(module, make(module.parameters()), batches), rtol=0, atol=1e-4)


def test_a_convolutional_net_is_trained_as_by_pytorch(tmp_path):
    torch.manual_seed(0)
    module = ConvNet().double()
    batches = [(torch.randn(6, 1, 8, 8, dtype=torch.float64), torch.randint(0, 4, (6,))) for _ in range(STEPS)]
    step = Step(tmp_path, module, batches[0][0], "--loss", "cross_entropy", "--optimizer", "adamw")
    losses = [step(*batch) for batch in batches]
    numpy.testing.assert_allclose(losses, train(module, torch.optim.AdamW(module.parameters()), batches), rtol=0,
                                  atol=1e-6)
    assert_same_weights(step, module, 1e-6)


F = torch.nn.functional
LOSSES = {
    "mse": (["mse"], lambda x, t: F.mse_loss(x, t)),
    "l1": (["l1"], lambda x, t: F.l1_loss(x, t)),
    "bce": (["bce_with_logits"], lambda x, t: F.binary_cross_entropy_with_logits(x, t)),
    "smoothed": (["cross_entropy", "--label-smoothing", 0.2], lambda x, t: F.cross_entropy(x, t, label_smoothing=0.2)),
    "ignored": (["cross_entropy", "--ignore-label", 3, "--label-smoothing", 0.1],
                lambda x, t: F.cross_entropy(x, t, label_smoothing=0.1, ignore_index=3)),
}


@pytest.mark.parametrize("name", LOSSES)
def test_losses_are_those_of_pytorch(name, tmp_path):
    options, loss = LOSSES[name]
    torch.manual_seed(0)
    module = Mlp().double()
    batches = examples(torch.float64, 5)
    if options[0] != "cross_entropy":
        batches = [(x, torch.rand(len(x), 5, dtype=torch.float64)) for x, _ in batches]
    step = Step(tmp_path, module, batches[0][0], "--loss", *options, "--optimizer", "sgd", "--learning-rate", 0.1)
    losses = [step(*batch) for batch in batches]
    numpy.testing.assert_allclose(losses, train(module, SGD(module.parameters(), 0.1), batches, loss), rtol=0,
                                  atol=1e-9)
    assert_same_weights(step, module, 1e-9)


def test_clipping_and_schedules_are_those_of_pytorch(tmp_path):
    torch.manual_seed(0)
    module = Mlp().double()
    batches = examples(torch.float64)
    step = Step(tmp_path, module, batches[0][0], "--loss", "cross_entropy", "--optimizer", "sgd", "--learning-rate",
                1, "--clip-norm", 0.2, "--schedule", "cosine", "--warmup", 5, "--steps", STEPS)
    losses = [step(*batch) for batch in batches]
    optimizer = SGD(module.parameters(), 1)
    schedule = torch.optim.lr_scheduler.LambdaLR(
        optimizer, lambda n: (n + 1) / 5 if n < 5 else 0.5 * (1 + math.cos(math.pi * (n - 5) / (STEPS - 5))))
    wanted = train(module, optimizer, batches, schedule=schedule, clip=0.2)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-6)
    assert_same_weights(step, module, 1e-6)


def rings(count, seed):
    """Points in three rings, and which."""
    generator = numpy.random.default_rng(seed)
    labels = generator.integers(0, 3, count)
    radius, angle = labels + 1 + generator.normal(0, 0.2, count), generator.uniform(0, 2 * numpy.pi, count)
    return numpy.stack([radius * numpy.cos(angle), radius * numpy.sin(angle)], 1).astype("f4"), labels


def bars(count, seed):
    """Images of a bar, by its direction: across, up, and the two diagonals."""
    generator = numpy.random.default_rng(seed)
    labels = generator.integers(0, 4, count)
    images = generator.normal(0, 0.4, (count, 1, 8, 8)).astype("f4")
    for image, label in zip(images, labels):
        at = generator.integers(2, 6)
        line = numpy.arange(8)
        rows, columns = [(numpy.full(8, at), line), (line, numpy.full(8, at)), (line, (line + at) % 8),
                         (line, (at - line) % 8)][label]
        image[0, rows, columns] += 1
    return images, labels


class Points(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(2, 32), torch.nn.ReLU(), torch.nn.Linear(32, 3))

    def forward(self, x):
        return self.layers(x)


def accuracy(y, labels):
    return (numpy.argmax(y, 1) == labels).mean()


@pytest.mark.parametrize("net, data", [(Points, rings), (ConvNet, bars)])
def test_a_model_learns_as_with_pytorch(net, data, tmp_path):
    torch.manual_seed(0)
    module, (x, labels), (other, wanted) = net(), data(1280, 1), data(500, 2)
    export(module, torch.tensor(x[:2]), tmp_path / "model.onnx")
    numpy.savez(tmp_path / "data.npz", x=x, target=labels)
    epochs = 8
    command("train", tmp_path / "model.onnx", "--data", tmp_path / "data.npz", "--loss", "cross_entropy", "--optimizer",
            "adamw", "--learning-rate", 0.01, "--epochs", epochs, "--in-order", "-o", tmp_path / "trained.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "trained.onnx"))
    trained = tenon.load(tmp_path / "trained.onnx").compile()
    ours = accuracy(numpy.array(trained(other)), wanted)
    batches = [(torch.tensor(x[i:i + 32]), torch.tensor(labels[i:i + 32])) for i in range(0, len(x), 32)]
    train(module, torch.optim.AdamW(module.parameters(), 0.01), batches * epochs)
    theirs = accuracy(module(torch.tensor(other)).detach().numpy(), wanted)
    assert theirs > 0.9
    assert ours > theirs - 0.02


def test_a_module_of_batch_norm_is_refused(tmp_path):
    module = torch.nn.Sequential(torch.nn.Tanh(), torch.nn.BatchNorm1d(6), torch.nn.Tanh()).eval()
    module[1].running_mean.fill_(0.5)  # the export would share what is equal
    module[1].running_var.fill_(2)
    export(module, torch.zeros(2, 6), tmp_path / "model.onnx")
    error = command("train-step", tmp_path / "model.onnx", "--loss", "mse", status=2)
    assert 'batch normalisation by stored statistics: "1.running_mean"' in error
    command("train-step", tmp_path / "model.onnx", "--loss", "mse", "--freeze", "1.running_*")
