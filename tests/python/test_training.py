"""Steps of training, compared with PyTorch's."""

import copy
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


# --- tenon.train_step ---


def keywords(options):
    """Options of the command line as those of tenon.train_step."""
    words = {"optimizer": options[0]}
    for i, option in enumerate(options):
        if str(option).startswith("--"):
            has_value = i + 1 < len(options) and not str(options[i + 1]).startswith("--")
            words[option[2:].replace("-", "_")] = options[i + 1] if has_value else True
    return words


def make_step(module, x, loss="cross_entropy", **options):
    return tenon.train_step(module, loss, args=(x,), dynamic=({0: "batch"},), **options)


@pytest.mark.parametrize("name", OPTIMIZERS)
def test_steps_of_a_module_are_those_of_pytorch(name):
    options, make = OPTIMIZERS[name]
    torch.manual_seed(0)
    module = Mlp().double()
    other = copy.deepcopy(module)
    batches = examples(torch.float64)
    step = make_step(module, batches[0][0], **keywords(options))
    losses = [step(*batch) for batch in batches]
    wanted = train(other, make(other.parameters()), batches)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-6)
    for (key, ours), theirs in zip(module.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-6, msg=key)
    assert step.steps == STEPS
    assert step.learning_rate == make(other.parameters()).param_groups[0]["lr"]


def test_gradients_are_summed_as_with_pytorch():
    torch.manual_seed(0)
    module = Mlp().double()
    other = copy.deepcopy(module)
    step = make_step(module, torch.zeros(4, 6, dtype=torch.float64), learning_rate=0.01, accumulate=3)
    optimizer = torch.optim.AdamW(other.parameters(), 0.01)
    for x, target in examples(torch.float64):
        loss = step(x, target)
        wanted = 0
        for part, labels in zip(x.split(4), target.split(4)):
            value = torch.nn.functional.cross_entropy(other(part), labels) / 3
            value.backward()
            wanted += value.item()
        optimizer.step()
        optimizer.zero_grad()
        assert loss == pytest.approx(wanted, abs=1e-9)
    for ours, theirs in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=1e-9)
    with pytest.raises(tenon.UserError, match="10 examples cannot be split into 3 batches of one size"):
        step(x[:10], target[:10])


def test_a_convnet_and_batches_of_several_sizes():
    torch.manual_seed(0)
    module = ConvNet()
    other = copy.deepcopy(module)
    images, labels = (torch.tensor(each) for each in bars(STEPS * 12, 1))
    ends = [min(i * 12 + (i % 2) * 5, len(images)) for i in range(STEPS + 1)]  # 17 and 7 in turns
    batches = [(images[a:b], labels[a:b].to(torch.int32)) for a, b in zip(ends, ends[1:])]
    step = make_step(module, images[:3], optimizer="adamw", learning_rate=0.01)
    losses = [step(*batch) for batch in batches]
    wanted = train(other, torch.optim.AdamW(other.parameters(), 0.01), [(x, y.long()) for x, y in batches])
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-4)


class NormalisedNet(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.first, self.first_norm = torch.nn.Conv2d(1, 4, 3, padding=1), torch.nn.BatchNorm2d(4)
        self.second, self.second_norm = torch.nn.Conv2d(4, 6, 3, bias=False), torch.nn.BatchNorm2d(6, momentum=0.3)
        self.last = torch.nn.Linear(6 * 4, 4)

    def forward(self, x):
        x = torch.nn.functional.max_pool2d(torch.relu(self.first_norm(self.first(x))), 2)
        return self.last(torch.tanh(self.second_norm(self.second(x))).flatten(1))


def images(dtype, count=STEPS):
    generator = torch.Generator().manual_seed(2)
    return [(torch.randn(8, 1, 8, 8, generator=generator, dtype=dtype), torch.randint(0, 4, (8,), generator=generator))
            for _ in range(count)]


def assert_same_module(module, other, tolerance):
    for (name, ours), theirs in zip(module.state_dict().items(), other.state_dict().values(), strict=True):
        torch.testing.assert_close(ours, theirs, rtol=0, atol=tolerance, msg=name)


@pytest.mark.parametrize("parts", [1, 2])
def test_running_statistics_are_those_of_pytorch(parts):
    torch.manual_seed(0)
    module = NormalisedNet().double()
    other = copy.deepcopy(module)
    batches = images(torch.float64)
    step = make_step(module, batches[0][0][: 8 // parts], optimizer="sgd", learning_rate=0.1, momentum=0.9, accumulate=parts)
    losses = [step(*batch) for batch in batches]
    optimizer = SGD(other.parameters(), 0.1, momentum=0.9)
    for ours, (x, target) in zip(losses, batches):
        values = [torch.nn.functional.cross_entropy(other(a), b) for a, b in zip(x.chunk(parts), target.chunk(parts))]
        optimizer.zero_grad()
        (sum(values) / parts).backward()
        optimizer.step()
        assert ours == pytest.approx((sum(values) / parts).item(), abs=1e-6)
    assert_same_module(module, other, 1e-6)
    assert module.first_norm.num_batches_tracked == STEPS * parts
    # The model is for inference.
    x = batches[0][0]
    torch.testing.assert_close(step.model.compile()(x), other.eval()(x).detach(), rtol=0, atol=1e-6)


@pytest.mark.parametrize("form", ["pt2", "onnx"])
def test_the_command_gathers_running_statistics(form, tmp_path):
    torch.manual_seed(0)
    module = NormalisedNet()
    batches = images(torch.float32)
    x, labels = (torch.cat([batch[i] for batch in batches]) for i in (0, 1))
    model = tmp_path / f"model.{form}"
    if form == "pt2":
        torch.export.save(torch.export.export(module, (x[:8],), dynamic_shapes=({0: torch.export.Dim("batch")},)), model)
    else:
        # The exporter runs the module.
        torch.onnx.export(copy.deepcopy(module), (x[:8],), model, input_names=["x"],
                          dynamic_axes={"x": {0: "batch"}}, opset_version=17, do_constant_folding=False, dynamo=False,
                          training=torch.onnx.TrainingMode.TRAINING)
        for initializer in (graph := onnx.load(model)).graph.initializer:
            value = module.state_dict()[initializer.name].numpy()
            initializer.CopyFrom(onnx.numpy_helper.from_array(value, initializer.name))
        onnx.save(graph, model)
    numpy.savez(tmp_path / "data.npz", x=x, target=labels)
    said = command("train", model, "--data", tmp_path / "data.npz", "--validate", tmp_path / "data.npz", "--loss", "cross_entropy",
                   "--optimizer", "sgd", "--learning-rate", 0.1, "--batch", 8, "--in-order", "--checkpoint", tmp_path / "state.npz",
                   "-o", tmp_path / "trained.onnx")
    variances = {}  # as ONNX has them: of the elements, where PyTorch's are of what these are a sample of

    def follow(norm, inputs, _):
        before = variances.get(norm, torch.ones(norm.num_features))
        now = inputs[0].detach().var((0, 2, 3), unbiased=False)
        variances[norm] = before * (1 - norm.momentum) + now * norm.momentum

    for norm in (module.first_norm, module.second_norm):
        norm.register_forward_hook(follow)
    train(module, SGD(module.parameters(), 0.1), batches)
    state = numpy.load(tmp_path / "state.npz")
    for name, wanted in module.state_dict().items():
        if form == "onnx" and name.endswith("num_batches_tracked"):
            continue  # which ONNX has not
        if form == "onnx" and name.endswith("running_var"):
            wanted = variances[module.get_submodule(name.removesuffix(".running_var"))]
        numpy.testing.assert_allclose(state[name], wanted, rtol=0, atol=1e-4, err_msg=name)
    if form == "onnx":
        assert "4 statistics gathered in training" in said
        return
    assert "6 statistics gathered in training" in said
    module.eval()
    trained = tenon.load(tmp_path / "trained.onnx").compile()
    torch.testing.assert_close(trained(x), module(x).detach(), rtol=0, atol=1e-3)
    loss = torch.nn.functional.cross_entropy(module(x), labels).item()
    assert f"validation loss {loss:.3f}" in said
    onnx.checker.check_model(onnx.load(tmp_path / "trained.onnx"))


def test_a_step_keeps_its_state_in_place():
    module = Points()
    x, labels = (torch.tensor(each) for each in rings(32, 1))
    step = make_step(module, x)
    places = {name: each.data_ptr() for name, each in module.named_parameters()}
    state = dict(zip([each.name for each in step._state], step._values))
    before = {name: each.clone() for name, each in module.named_parameters()}
    step(x, labels)
    for value, now in zip(step._state, step._values):
        assert now is state[value.name], value.name
        if value.name.endswith("exp_avg"):
            assert now.abs().max() > 0
    for name, each in module.named_parameters():
        assert each.data_ptr() == places[name] and each.requires_grad
        assert not torch.equal(each, before[name])


def test_what_a_module_is_given_is_trained_from():
    torch.manual_seed(0)
    module, other = Mlp(), Mlp()
    batch = examples(torch.float32, 1)[0]
    step = make_step(module, batch[0], optimizer="sgd")
    step(*batch)
    module.load_state_dict(other.state_dict())
    assert step(*batch) == pytest.approx(torch.nn.functional.cross_entropy(other(batch[0]), batch[1]).item(), abs=1e-6)
    module.to(torch.float32).layers[0].weight.data = torch.zeros(16, 6)
    step(*batch)
    assert module.layers[0].weight.abs().max() > 0
    assert {*step.state_dict()} == {*module.state_dict()}


def test_buffers_and_what_needs_no_gradient_stay():

    class Moved(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.register_buffer("place", torch.randn(5))
            self.register_buffer("factor", torch.tensor(2.0), persistent=False)
            self.first, self.last = torch.nn.Linear(5, 5), torch.nn.Linear(5, 3)
            self.first.bias.requires_grad_(False)

        def forward(self, x):
            return self.last(torch.tanh(self.first(x + self.place)) * self.factor)

    torch.manual_seed(0)
    module = Moved()
    other = copy.deepcopy(module)
    step = make_step(module, torch.zeros(2, 5), "mse", optimizer="sgd", learning_rate=0.1)
    batches = [(torch.randn(4, 5), torch.randn(4, 3)) for _ in range(5)]
    losses = [step(*batch) for batch in batches]
    trained = [each for each in other.parameters() if each.requires_grad]
    wanted = train(other, SGD(trained, 0.1), batches, torch.nn.functional.mse_loss)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-5)
    for (name, ours), theirs in zip(module.named_parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs, msg=name)
    assert torch.equal(module.place, other.place) and module.factor == 2


def test_tied_and_frozen_weights():

    class Tied(torch.nn.Module):

        def __init__(self):
            super().__init__()
            self.first, self.second = torch.nn.Linear(5, 5), torch.nn.Linear(5, 5)
            self.second.weight = self.first.weight
            self.last = torch.nn.Linear(5, 3)

        def forward(self, x):
            return self.last(torch.tanh(self.second(torch.tanh(self.first(x)))))

    torch.manual_seed(0)
    module = Tied()
    other = copy.deepcopy(module)
    other.last.requires_grad_(False)
    step = make_step(module, torch.zeros(2, 5), "mse", optimizer="sgd", learning_rate=0.1, freeze="last.*")
    batches = [(torch.randn(4, 5), torch.randn(4, 3)) for _ in range(5)]
    losses = [step(*batch) for batch in batches]
    parameters = [each for each in other.parameters() if each.requires_grad]
    wanted = train(other, SGD(parameters, 0.1), batches, torch.nn.functional.mse_loss)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-5)
    for ours, theirs in zip(module.parameters(), other.parameters(), strict=True):
        torch.testing.assert_close(ours, theirs)
    assert module.second.weight is module.first.weight


def test_a_file_is_trained_with_arrays_of_numpy(tmp_path):
    torch.manual_seed(0)
    module = Mlp()
    export(module, torch.zeros(2, 6), tmp_path / "model.onnx")
    step = tenon.train_step(tmp_path / "model.onnx", "cross_entropy", "adam", learning_rate=0.01)
    batches = examples(torch.float32, 5)
    losses = [step(x=x.numpy(), target=target.numpy()) for x, target in batches]
    wanted = train(module, torch.optim.Adam(module.parameters(), 0.01), batches)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-5)
    for name, weight in step.state_dict().items():
        numpy.testing.assert_allclose(weight, module.state_dict()[name], rtol=0, atol=1e-5)
    step.save(tmp_path / "trained.onnx")
    onnx.checker.check_model(onnx.load(tmp_path / "trained.onnx"))
    x = batches[0][0]
    trained = tenon.load(tmp_path / "trained.onnx").compile()
    torch.testing.assert_close(trained(x), module(x).detach(), rtol=0, atol=1e-4)
    numpy.testing.assert_array_equal(step.model.compile()(x.numpy()), trained(x.numpy()))


def test_a_step_goes_on_from_a_state():
    torch.manual_seed(0)
    batches = examples(torch.float32, 6)
    first = make_step(Mlp(), batches[0][0], learning_rate=0.01, schedule="cosine", steps=6)
    start, state = first.state_dict(), first.state()
    weights = {name: weight.clone() for name, weight in start.items()}
    for batch in batches[:3]:
        first(*batch)
    state = first.state()
    losses = [first(*batch) for batch in batches[3:]]
    module = Mlp()
    second = make_step(module, batches[0][0], learning_rate=0.01, schedule="cosine", steps=6)
    second.load_state(state)
    assert second.steps == 3
    assert [second(*batch) for batch in batches[3:]] == losses
    assert not torch.equal(module.layers[0].weight, weights["layers.0.weight"])
    with pytest.raises(tenon.UserError, match="the state of another model or optimizer: layers.0.bias.exp_avg"):
        make_step(Mlp(), batches[0][0], optimizer="sgd").load_state(state)
    with pytest.raises(tenon.UserError, match=r'"step" has the sizes \[1\], but that of the model has \[\]'):
        second.load_state({**state, "step": torch.zeros(1)})
    before = second.state()
    wrong = {**{name: value + 1 for name, value in state.items()}, "step": torch.tensor(3.0)}
    with pytest.raises(tenon.UserError, match='"step" is of torch.float32, but that of the model is of torch.int64'):
        second.load_state(wrong)
    assert all(torch.equal(value, before[name]) for name, value in second.state().items())
    second.load_state({name: value.requires_grad_(value.is_floating_point()) for name, value in state.items()})
    assert second.steps == 3


class Sequence(torch.nn.Module):

    def __init__(self):
        super().__init__()
        self.cell, self.last = torch.nn.Linear(3, 4), torch.nn.Linear(4, 2)

    def forward(self, x):
        return self.last(torch.tanh(self.cell(x)).mean(1))


def test_gradients_are_summed_where_several_sizes_are_open():
    torch.manual_seed(0)
    module = Sequence()
    other = copy.deepcopy(module)
    step = tenon.train_step(module, "cross_entropy", "sgd", args=(torch.zeros(4, 5, 3),),
                            dynamic=({0: "batch", 1: "length"},), learning_rate=0.1, accumulate=2)
    batches = [(torch.randn(6, length, 3), torch.randint(0, 2, (6,))) for length in (5, 7)]
    losses = [step(*batch) for batch in batches]
    wanted = train(other, SGD(other.parameters(), 0.1), batches)
    numpy.testing.assert_allclose(losses, wanted, rtol=0, atol=1e-5)


@pytest.mark.parametrize("seed", [2**32, 2**64 - 1, 2**70])
def test_seeds_may_be_large(seed):
    batch = examples(torch.float32, 1)[0]
    step = make_step(Mlp(), batch[0], seed=seed)
    step(*batch)
    assert step.steps == 1


def test_what_a_step_does_not_take():
    x, y = examples(torch.float32, 1)[0]
    step = make_step(Mlp(), x, optimizer="sgd")
    before = {name: weight.clone() for name, weight in step.state_dict().items()}
    for arguments, message in [((x,), "the step takes x, target, but got 1 tensors"),
                               ((x, torch.full_like(y, 5)), "the target has the label 5, but the model has 5 classes"),
                               ((x, y - 5), "hint: ignore_label=-5 leaves it out"),
                               ((x, y.double()), "takes labels, which are integers, but the target is of torch.float64"),
                               ((x.double(), y), "input x must be"), ((x, y[1:]), "input target must be")]:
        with pytest.raises(tenon.UserError, match=message):
            step(*arguments)
    for name, weight in step.state_dict().items():
        assert torch.equal(weight, before[name])
    assert step.steps == 0


@pytest.mark.parametrize("options, message", [
    ({"momentum": 0.9}, "^momentum is for sgd, but what was chosen is adamw$"),
    ({"schedule": "cosine"}, "hint: steps says how many there are"),
    ({"beta1": 2}, "^beta1: it must be a number from 0 to below 1, but is 2$"),
    ({"optimizer": "adan"}, "^optimizer: .* but is adan"),
    ({"loss": "mse", "label_smoothing": 0.1}, "^label_smoothing is for loss cross_entropy, but what was chosen is mse$"),
    ({"freeze": ["layers.0.*", "last.*"]}, "no weight is called last"),
    ({"accumulate": "two"}, "^accumulate: it must be a whole number from 1 up, but is two$"),
    ({"accumulate": 0}, "^accumulate: it must be a whole number from 1 up, but is 0$"),
    ({"seed": -1}, "^seed: it must be a whole number from 0 up, but is -1$"),
])
def test_options_that_are_refused(options, message):
    with pytest.raises(tenon.UserError, match=message):
        make_step(Mlp(), torch.zeros(2, 6), **options)
