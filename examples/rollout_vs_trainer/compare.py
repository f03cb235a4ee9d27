"""The log-probabilities of one sequence, as a rollout and as a trainer compute them from the same hidden states.

Three schedules of the same rows: token by token (decoding), all in one call (prefill), and shuffled into micro-batches
with rows of other sequences (training). The heads: PyTorch eager with bfloat16 and with float32 logits, torch.compile
and isobit. Printed and plotted: how far prefill and training are from what decoding reported.

  compare.py [--model random|gemma3|smollm2] [--device cpu|cuda] [--jsonl FILE] [--svg FILE]
"""

import argparse
import json
import pathlib
import sys

import plot
import torch

import isobit
import isobit.torch

ROOT = pathlib.Path(__file__).parents[2]


def random_operands(rows, width, vocabulary, device):
    """Hidden states and a head with the spread that a trained model's logits have, and likely targets."""
    hidden = torch.randn(rows, width, device=device).bfloat16()
    weight = (torch.randn(vocabulary, width, device=device) * 3 / width**0.5).bfloat16()
    logits = hidden.float() @ weight.float().T
    return hidden, weight, torch.multinomial(logits.softmax(-1), 1)[:, 0]


def model_operands(name):
    """Hidden states of the demo's text from its NumPy forward pass, and the model's own head."""
    sys.path.insert(0, str(ROOT / "examples/gemma3"))
    import model  # noqa: PLC0415 - the demo's modules are there from here on
    import scoring  # noqa: PLC0415
    import sources  # noqa: PLC0415
    import tokenizer  # noqa: PLC0415

    source = sources.find(name, ROOT / ".demo")
    network = model.Model(source.file)
    ids = tokenizer.from_metadata(source.file.meta).encode(sources.TEXT)
    hidden, head = isobit.to_bf16(network.hidden(ids)[:-1]), scoring.to_bf16(network.head)
    return *(torch.from_numpy(bits).view(torch.bfloat16) for bits in (hidden, head)), torch.tensor(ids[1:])


def eager(hidden, weight, target):
    """The usual head: bf16 logits, log_softmax in float32, gather."""
    return (hidden @ weight.T).float().log_softmax(-1).gather(1, target[:, None])[:, 0]


def eager_fp32(hidden, weight, target):
    """The same with float32 logits, which costs a float32 copy of the head."""
    return (hidden.float() @ weight.float().T).log_softmax(-1).gather(1, target[:, None])[:, 0]


def ours(hidden, weight, target):
    return isobit.torch.linear_logp(hidden, weight, target, want=("logp",)).logp


def token_by_token(head, hidden, weight, target):
    return torch.cat([head(hidden[i : i + 1], weight, target[i : i + 1]) for i in range(len(target))])


def micro_batches(head, hidden, weight, target, size=24):
    """The rows among as many of other sequences, shuffled, a few at a time."""
    rows = len(target)
    mixed = torch.cat([hidden, torch.randn_like(hidden)])
    ids = torch.cat([target, target.flip(0)])
    order = torch.randperm(2 * rows, generator=torch.Generator().manual_seed(3)).to(hidden.device)
    parts = [head(mixed[part], weight, ids[part]) for part in order.split(size)]
    back = torch.empty(2 * rows, device=hidden.device)
    back[order] = torch.cat(parts)
    return back[:rows]


def compare(name, head, operands):
    """One record for each of the two other schedules, and the differences themselves for the plot."""
    rollout = token_by_token(head, *operands).double()
    schedules = {"prefill": head(*operands), "training": micro_batches(head, *operands)}
    records, differences = [], {}
    for schedule, logp in schedules.items():
        delta = logp.double() - rollout
        differences[f"{name}, {schedule}"] = delta.abs().tolist()
        k3 = torch.exp(delta) - delta - 1
        counts = {"rows": len(delta), "rows_that_differ": int((delta != 0).sum())}
        sizes = {"max_abs_difference": float(delta.abs().max()), "mean_k3": float(k3.mean())}
        records.append({"head": name, "schedule": schedule, **counts, **sizes})
    return records, differences


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.split("\n")[0])
    parser.add_argument("--model", choices=["random", "gemma3", "smollm2"], default="random")
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--rows", type=int, default=48, help="of the random model")
    parser.add_argument("--hidden", type=int, default=640, help="of the random model")
    parser.add_argument("--vocabulary", type=int, default=32768, help="of the random model")
    parser.add_argument("--no-compile", action="store_true", help="leave torch.compile out")
    parser.add_argument("--jsonl", type=pathlib.Path)
    parser.add_argument("--svg", type=pathlib.Path)
    options = parser.parse_args()
    torch.manual_seed(0)
    if options.model == "random":
        operands = random_operands(options.rows, options.hidden, options.vocabulary, options.device)
    else:
        operands = model_operands(options.model)
    operands = [tensor.to(options.device) for tensor in operands]
    heads = {"PyTorch eager": eager, "eager, fp32": eager_fp32, "torch.compile": torch.compile(eager, dynamic=True),
             "isobit": ours}  # fmt: skip
    if options.no_compile:
        del heads["torch.compile"]
    device = torch.cuda.get_device_name() if options.device == "cuda" else "cpu"
    about = {"model": options.model, "device": device, "V": len(operands[1]), "H": operands[1].shape[1],
             "torch": torch.__version__, "build": isobit.build_info()}  # fmt: skip
    lines, differences = [], {}
    print(f"{'head':<16}{'schedule':<12}{'rows that differ':>17}{'max |d logp|':>15}{'mean k3 KL':>13}")
    with torch.no_grad():
        for name, head in heads.items():
            records, found = compare(name, head, operands)
            differences |= found
            for r in records:
                print(f"{name:<16}{r['schedule']:<12}{r['rows_that_differ']:>10} of {r['rows']:<4}"
                      f"{r['max_abs_difference']:>14.2e}{r['mean_k3']:>13.2e}")  # fmt: skip
                lines.append(json.dumps({**r, **about}))
    print("\nThe hidden states are the same in all schedules: what is exact here is the head, not the layers below it.")
    if options.jsonl:
        options.jsonl.write_text("\n".join(lines) + "\n")
    if options.svg:
        options.svg.write_text(plot.differences(differences))
    same = all(json.loads(line)["rows_that_differ"] == 0 for line in lines if json.loads(line)["head"] == "isobit")
    return 0 if same else 1


if __name__ == "__main__":
    sys.exit(main())
