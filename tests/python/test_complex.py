"""Complex numbers within modules: Fourier transforms, spectra of frames, and what is computed with them."""

import pytest
import torch

import tenon


class Of(torch.nn.Module):
    def __init__(self, function, window=None):
        super().__init__()
        self.function = function
        self.register_buffer("window", window)

    def forward(self, x):
        return self.function(x) if self.window is None else self.function(x, self.window)


def compare(function, x, window=None):
    module = Of(function, window)
    torch.testing.assert_close(tenon.compile(module, (x,))(x), module(x), rtol=1e-4, atol=1e-5)


def numbers(*shape, dtype=torch.float32):
    return torch.randn(shape, dtype=dtype, generator=torch.Generator().manual_seed(0))


REALS = {
    "rfft": lambda x: torch.view_as_real(torch.fft.rfft(x)),
    "rfft of 12": lambda x: torch.view_as_real(torch.fft.rfft(x, n=12, norm="ortho")),
    "rfft cut": lambda x: torch.view_as_real(torch.fft.rfft(x, n=5, dim=1, norm="forward")),
    "fft": lambda x: torch.view_as_real(torch.fft.fft(x, dim=0)),
    "ifft": lambda x: torch.view_as_real(torch.fft.ifft(x, norm="ortho").resolve_conj()),
    "fft and back": lambda x: torch.fft.ifft(torch.fft.fft(x, norm="forward"), norm="forward").real,
    "irfft": lambda x: torch.fft.irfft(torch.fft.rfft(x)),
    "irfft of 9": lambda x: torch.fft.irfft(torch.fft.rfft(x), n=9, norm="ortho"),
    "rfft2": lambda x: torch.fft.rfft2(x).abs(),
    "rfft2 with sizes": lambda x: torch.fft.rfft2(x, s=(4, 10), norm="ortho").abs(),
    "irfft2": lambda x: torch.fft.irfft2(torch.fft.rfft2(x, norm="ortho"), s=(6, 8), norm="ortho"),
    "rfftn": lambda x: torch.fft.irfftn(torch.fft.rfftn(x) * 2.0),
    "fft2": lambda x: torch.fft.ifft2(torch.fft.fft2(x)).imag + torch.fft.fft2(x).real,
    "fftn": lambda x: torch.fft.ifftn(torch.fft.fftn(x, norm="ortho"), norm="ortho").real,
    "convolution": lambda x: torch.fft.irfft(torch.fft.rfft(x) * torch.fft.rfft(x.flip(-1)).conj()),
    "quotient": lambda x: torch.view_as_real(torch.fft.rfft(x) / (torch.fft.rfft(x.flip(1)) + 3.0)),
    "sums": lambda x: torch.view_as_real(torch.fft.rfft(x) - torch.add(torch.fft.fft(x)[..., :5], x[..., :5], alpha=2)),
    "parts": lambda x: torch.fft.rfft(x).real - torch.fft.rfft(x).imag,
    "angle": lambda x: torch.fft.rfft(x).angle(),
    "shapes": lambda x: torch.view_as_real(
        torch.cat([torch.fft.rfft(x).transpose(0, 2)[1:3], torch.fft.rfft(x).mT.permute(1, 2, 0)[:2]])
    ),
    "sum": lambda x: torch.view_as_real(torch.fft.fft(x).sum(dim=(0, -1), keepdim=True)),
    "made": lambda x: torch.complex(x, x + 1).abs(),
    "made of pairs": lambda x: torch.view_as_complex(torch.stack([x, -x], -1)).reshape(2, -1).real,
    "polar": lambda x: torch.view_as_real(torch.polar(x.abs(), x) * -x),
}


@pytest.mark.parametrize("name", REALS)
def test_what_is_computed_with_spectra(name):
    compare(REALS[name], numbers(2, 6, 8))


def test_double_precision():
    x = numbers(3, 15, dtype=torch.float64)
    expected = torch.view_as_real(torch.fft.rfft(x))
    got = tenon.compile(Of(REALS["rfft"]), (x,))(x)
    assert got.dtype == torch.float64
    torch.testing.assert_close(got, expected, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("shape, frame, step, inner", [((2, 64), 16, 4, 16), ((50,), 16, 5, 10), ((1, 42), 14, 14, 14)])
@pytest.mark.parametrize("normalized", [False, True])
def test_spectra_of_frames(shape, frame, step, inner, normalized):
    window = torch.hann_window(inner) + 0.1
    options = {"n_fft": frame, "hop_length": step, "win_length": inner, "normalized": normalized}

    def power(x, window):
        return torch.stft(x, window=window, return_complex=True, **options).abs() ** 2

    def there_and_back(x, window):
        return torch.istft(torch.stft(x, window=window, return_complex=True, **options) * 0.5, window=window, **options)

    compare(power, numbers(*shape), window=window)
    compare(there_and_back, numbers(*shape), window=window)


def test_frames_without_window_and_with_both_sides():
    def both(x):
        y = torch.stft(x, 16, 4, center=False, onesided=False, return_complex=True)
        return torch.istft(y, 16, 4, center=False, onesided=False, length=72)[:, :64]

    compare(both, numbers(2, 64))


def test_windows_of_cosines():
    windows = {
        "hann": torch.hann_window(10),
        "symmetric": torch.hann_window(9, periodic=False),
        "hamming": torch.hamming_window(10, True, 0.6, 0.4),
        "blackman": torch.blackman_window(10, dtype=torch.float64),
    }

    def made(x):
        return {
            "hann": torch.hann_window(10) + x * 0,
            "symmetric": torch.hann_window(9, periodic=False) + x[:9] * 0,
            "hamming": torch.hamming_window(10, True, 0.6, 0.4) + x * 0,
            "blackman": torch.blackman_window(10, dtype=torch.float64) + x * 0,
        }

    x = numbers(10)
    torch.testing.assert_close(tenon.compile(Of(made), (x,))(x), windows, rtol=1e-6, atol=1e-6)


def test_dynamic_sizes():
    window = torch.hann_window(16)
    module = Of(lambda x, window: torch.view_as_real(torch.stft(x, 16, 4, window=window, return_complex=True)), window)
    net = tenon.compile(module, (numbers(2, 64),), dynamic={"x": {0: "batch", 1: torch.export.Dim("time", min=9)}})
    for shape in ((2, 64), (3, 100), (1, 33)):
        torch.testing.assert_close(net(numbers(*shape)), module(numbers(*shape)), rtol=1e-4, atol=1e-5)
    module = Of(lambda x: torch.view_as_real(torch.fft.rfft(x, norm="ortho")))
    net = tenon.compile(module, (numbers(2, 12),), dynamic={"x": {1: "time"}})
    for size in (12, 17):
        torch.testing.assert_close(net(numbers(2, size)), module(numbers(2, size)), rtol=1e-4, atol=1e-5)


def test_complex_weights():
    class Rotary(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.register_buffer("turns", torch.polar(torch.ones(6, 4), torch.arange(24.0).reshape(6, 4)))

        def forward(self, x):
            pairs = torch.view_as_complex(x.reshape(2, 6, 4, 2))
            return torch.view_as_real(pairs * self.turns).flatten(2)

    x, module = numbers(2, 6, 8), Rotary()
    torch.testing.assert_close(tenon.compile(module, (x,))(x), module(x), rtol=1e-4, atol=1e-5)


def test_torch_compile_keeps_nothing_to_pytorch():
    window = torch.hann_window(16)
    x = numbers(2, 64)

    def mel(x):
        return torch.stft(x, 16, 4, window=window, return_complex=True).abs().pow(2).log1p()

    def smooth(x):
        return torch.fft.irfft(torch.fft.rfft(x) * 0.5)

    for function in (mel, smooth):
        with torch.no_grad():
            torch._dynamo.reset()
            compiled = torch.compile(function, backend="tenon", options={"fallback": "error"})
            torch.testing.assert_close(compiled(x), function(x), rtol=1e-4, atol=1e-5)


def test_torch_compile_leaves_what_it_cannot_pair_to_pytorch():
    x = numbers(2, 8)
    for function in (lambda x: torch.fft.rfft(x), lambda x: torch.fft.rfft(x).prod().abs()):
        with torch.no_grad():
            torch._dynamo.reset()
            torch.testing.assert_close(torch.compile(function, backend="tenon")(x), function(x), rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "function, message",
    [
        (lambda x: torch.fft.rfft(x).prod().abs(), 'prod.* of complex numbers: 1 node, "prod"'),
        (lambda x: x.sum(dtype=torch.complex64).abs(), '"sum_1".*of a real tensor to complex numbers'),
        (lambda x: torch.fft.rfft(x), 'the output "fft_rfft" is of complex numbers.*\n  hint: .*view_as_real'),
        (
            lambda x: torch.stft(torch.complex(x, x), 4, 2, center=False, onesided=False, return_complex=True).abs(),
            '"stft".*complex signal',
        ),
    ],
)
def test_what_is_refused(function, message):
    with pytest.raises(tenon.UnsupportedError, match=message):
        tenon.compile(Of(function), (numbers(2, 8),))
    with pytest.raises(tenon.UnsupportedError, match='the input "x" is of complex numbers'):
        tenon.compile(Of(lambda x: x.abs()), (torch.complex(numbers(2), numbers(2)),))
