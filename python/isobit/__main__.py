"""``python -m isobit``: the build that is loaded and its kernels, the text to paste into a bug report."""

from . import build_info, has_cuda, kernels


def main() -> None:
    print(build_info())
    if not has_cuda():
        print("CPU backend only: nvcc was not there when the library was built, so it has no GPU kernel")
    for row in kernels():
        state = "usable" if row.usable else row.reason
        print(f"{row.op:<16}{row.kernel:<6}{row.contract:<34}{state}")


if __name__ == "__main__":
    main()
