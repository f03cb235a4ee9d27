"""torch.ops.isobit.nvfp4_*: the bytes of the C calls, and an MLP made of them against PyTorch."""

import pytest
import torch
import torch.nn.functional as F
from conftest import as_bits, needs_cuda, same_bits

import isobit
import isobit.torch as it
from isobit.torch._nvfp4_mlp import tile_scales


def as_numpy(matrix):
    return isobit.Nvfp4Matrix(as_bits(matrix.codes), as_bits(matrix.scales), matrix.layout)


def make(device, layout="128x4"):
    x, weight, down = (torch.randn(shape).to(device, torch.bfloat16) for shape in ((5, 64), (96, 64), (32, 48)))
    return [it.nvfp4_quantize(t, global_scale=500.0, layout=layout) for t in (x, weight, down)]


@pytest.mark.parametrize("layout", ["linear", "128x4", "8x4"])
def test_the_three_operators_have_the_bytes_of_the_numpy_calls(device, layout):
    x = torch.randn(5, 64).to(device, torch.bfloat16)
    packed = it.nvfp4_quantize(x, global_scale=500.0, layout=layout)
    expected = isobit.nvfp4_quantize(as_bits(x), global_scale=500.0, layout=layout)
    assert as_bits(packed.codes).tobytes() == expected.codes.tobytes()
    assert as_bits(packed.scales).tobytes() == expected.scales.tobytes()
    x, weight, down = make(device, layout)
    scales = {"x_scale": 0.002, "gate_scale": 0.001, "up_scale": 0.003, "out_scale": 60.0}
    hidden = it.nvfp4_geglu(x, weight, gelu="tanh", layout=layout, **scales)
    wanted = isobit.nvfp4_geglu(as_numpy(x), as_numpy(weight), gelu="tanh", layout=layout, **scales)
    assert as_bits(hidden.codes).tobytes() == wanted.codes.tobytes()
    assert as_bits(hidden.scales).tobytes() == wanted.scales.tobytes()
    out = it.nvfp4_linear(hidden, down, x_scale=1 / 60, weight_scale=0.002, dtype=torch.float32)
    assert (
        as_bits(out).tobytes()
        == isobit.nvfp4_linear(wanted, as_numpy(down), x_scale=1 / 60, weight_scale=0.002).tobytes()
    )


def test_a_scale_may_be_a_tensor(device):
    x, weight, _ = make(device)
    by_tensor = it.nvfp4_linear(x, weight, x_scale=torch.tensor([0.002], device=device))
    assert same_bits(by_tensor, it.nvfp4_linear(x, weight, x_scale=0.002))


def test_tiled_scales_are_those_of_the_quantizer(device):
    x = torch.randn(130, 16 * 7).to(device)
    linear = it.nvfp4_quantize(x, global_scale=300.0, layout="linear")
    tiled = it.nvfp4_quantize(x, global_scale=300.0, layout="128x4")
    assert same_bits(tile_scales(linear.scales), tiled.scales)


def mlp_and_weights(device):
    gate, up, down = (torch.randn(shape) * 0.1 for shape in ((96, 64), (96, 64), (64, 96)))
    weights = [w.to(device, torch.bfloat16) for w in (gate, up, down)]
    return it.Nvfp4Mlp.from_weights(*weights, gelu="tanh", input_amax=4.0, hidden_amax=6.0), weights


def test_the_mlp_is_that_of_pytorch_within_four_bits(device):
    mlp, (gate, up, down) = mlp_and_weights(device)
    x = torch.randn(2, 9, 64).to(device, torch.bfloat16)
    got = it.nvfp4_mlp(x, mlp).double()
    z = x.double()
    wanted = (F.gelu(z @ gate.double().T, approximate="tanh") * (z @ up.double().T)) @ down.double().T
    # Rounding to E2M1 leaves an error of 0.1 in an operand: 0.14 in gate and up, about 0.2 in their product, which is
    # rounded again and meets a rounded weight: 0.25. A scale or a row in the wrong place gives 1 and more.
    assert (got - wanted).norm() / wanted.norm() < 0.35


def test_a_row_of_the_mlp_does_not_depend_on_its_batch(device):
    mlp, _ = mlp_and_weights(device)
    x = torch.randn(33, 64).to(device, torch.bfloat16)
    whole = mlp(x)
    assert same_bits(whole[7:8], mlp(x[7:8]))
    order = torch.randperm(33, device=device)
    assert same_bits(whole[order], mlp(x[order]))


def test_opcheck_and_compile(device):
    x, weight, _ = make(device)
    torch.library.opcheck(
        torch.ops.isobit.nvfp4_quantize.default, (torch.randn(3, 32, device=device), 2.0, None, "8x4")
    )
    ones = (1.0, None)
    torch.library.opcheck(torch.ops.isobit.nvfp4_linear.default, (*x, *weight, *ones, *ones, torch.bfloat16))
    torch.library.opcheck(
        torch.ops.isobit.nvfp4_geglu.default, (*x, *weight, *ones, *ones, *ones, *ones, "erf", "128x4")
    )
    mlp, _ = mlp_and_weights(device)
    compiled = torch.compile(mlp, fullgraph=True, dynamic=True, backend="aot_eager")
    with torch.no_grad():
        for rows in (3, 9):
            z = torch.randn(rows, 64).to(device, torch.bfloat16)
            assert same_bits(compiled(z), mlp(z))


@pytest.mark.parametrize("size", [0.0, 1e-40, 1e-37])
def test_weights_of_zeros_or_subnormals_have_a_global_scale(device, size):
    weights = [torch.full(shape, size, device=device) for shape in ((32, 64), (32, 64), (64, 32))]
    mlp = it.Nvfp4Mlp.from_weights(*weights, gelu="tanh", input_amax=1.0, hidden_amax=1.0)
    assert mlp(torch.ones(2, 64, device=device)).abs().max() < 1e-30


@pytest.mark.parametrize("name", ["input_amax", "hidden_amax"])
def test_a_calibration_that_saw_nothing_is_refused(device, name):
    _, weights = mlp_and_weights(device)
    for wrong in (0.0, -1.0, float("inf"), float("nan")):
        with pytest.raises(ValueError, match=f"{name}: expected a positive finite number"):
            it.Nvfp4Mlp.from_weights(*weights, gelu="tanh", **{"input_amax": 1.0, "hidden_amax": 1.0, name: wrong})


def test_a_state_dict_holds_the_global_scales(device):
    mlp, weights = mlp_and_weights(device)
    other = it.Nvfp4Mlp.from_weights(*weights, gelu="tanh", input_amax=1.0, hidden_amax=2.0)
    x = torch.randn(9, weights[0].shape[1], device=device).bfloat16()
    assert not same_bits(other(x), mlp(x))
    other.load_state_dict(mlp.state_dict())
    assert same_bits(other(x), mlp(x))
    erf = it.Nvfp4Mlp.from_weights(*weights, gelu="erf", input_amax=1.0, hidden_amax=2.0)
    with pytest.raises(ValueError, match="gelu: expected 'erf'"):
        erf.load_state_dict(mlp.state_dict())


def test_refusals(device):
    x, weight, _ = make(device)
    mlp, _ = mlp_and_weights(device)
    with pytest.raises(ValueError, match="gelu: expected"):
        it.nvfp4_geglu(x, weight, gelu="silu")
    with pytest.raises(ValueError, match="layout: expected"):
        it.nvfp4_quantize(torch.ones(2, 32, device=device), layout="4x4")
    with pytest.raises(isobit.InvalidArgumentError, match="K a positive multiple of 16"):
        it.nvfp4_quantize(torch.ones(2, 40, device=device))
    with pytest.raises(RuntimeError, match="forward only"):
        mlp(torch.ones(2, 64, device=device, requires_grad=True))


@needs_cuda
def test_the_mlp_is_captured_in_a_graph():
    mlp, _ = mlp_and_weights("cuda")
    x, graph = torch.zeros(17, 64, device="cuda", dtype=torch.bfloat16), torch.cuda.CUDAGraph()
    with torch.no_grad():
        mlp(x)
        with torch.cuda.graph(graph):
            out = mlp(x)
        for _ in range(2):
            x.copy_(torch.randn(17, 64))
            graph.replay()
            torch.cuda.synchronize()
            assert same_bits(out, mlp(x))
