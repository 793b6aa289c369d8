#!/usr/bin/env python3
"""Times a product with the Hessian of the reference transformer's loss in PyTorch, the peer of train_step --hvp:
bench/torch_hvp.py --connection mhc --mode forward

Prints one JSON line: the median gradient and the median product in milliseconds, peak memory. reverse: backward through the
backward pass (create_graph); forward: forward mode over the gradient (torch.func). Attention is PyTorch's math form, the only
one that can be differentiated twice. bench/steps.py runs it in turn with train_step. Needs torch.
"""
import argparse
import json
import resource
import statistics
import time

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch_step import WARM_UP, Transformer


def median_ms(run, steps):
    times = []
    for _ in range(WARM_UP + steps):
        start = time.perf_counter()
        run()
        times.append(time.perf_counter() - start)
    return round(1e3 * statistics.median(times[WARM_UP:]), 2)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connection", default="mhc", choices=("residual", "hc", "mhc"))
    for name, default in (("channels", 384), ("layers", 6), ("heads", 6), ("context", 256), ("batch", 8), ("vocab", 65),
                          ("streams", 4), ("steps", 5), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", default="f32", choices=("f32", "f64"))
    parser.add_argument("--mode", default="reverse", choices=("reverse", "forward"))
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Transformer(options).to(torch.float64 if options.dtype == "f64" else torch.float32)
    tokens, targets = torch.randint(options.vocab, (2, options.batch, options.context))
    params = dict(model.named_parameters())
    xs = list(params.values())
    vs = [torch.randn_like(x) for x in xs]

    def gradient():
        return torch.autograd.grad(model(tokens, targets), xs)

    def reverse():
        grads = torch.autograd.grad(model(tokens, targets), xs, create_graph=True)
        return torch.autograd.grad(sum((g * v).sum() for g, v in zip(grads, vs)), xs, allow_unused=True)

    def forward():
        def loss(params):
            return torch.func.functional_call(model, params, (tokens, targets))
        return torch.func.jvp(torch.func.grad(loss), (params,), (dict(zip(params, vs)),))[1]

    with sdpa_kernel(SDPBackend.MATH):
        times = {"ms_gradient": median_ms(gradient, options.steps),
                 "ms_hvp": median_ms(reverse if options.mode == "reverse" else forward, options.steps)}
    print(json.dumps({"peer": f"pytorch {torch.__version__}", **vars(options), **times,
                      "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


if __name__ == "__main__":
    main()
