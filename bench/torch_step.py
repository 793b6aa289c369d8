#!/usr/bin/env python3
"""Times one training step of the reference transformer in PyTorch, the peer of train_step: bench/torch_step.py --connection mhc

Prints one JSON line: the median step (forward, backward, clipping, AdamW) in milliseconds, FLOP/s of the products, peak memory.
bf16 is autocast over weights of f32. bench/steps.py runs it in turn with train_step. Needs torch.
"""
import argparse
import json
import resource
import statistics
import time

import torch
import torch.nn as nn
import torch.nn.functional as F

WARM_UP = 2  # steps, as in train_step


def wide(x):
    return x if x.dtype == torch.float64 else x.float()


def rms(x, weight=None, eps=1e-5):
    y = x * torch.rsqrt(wide(x).pow(2).mean(-1, keepdim=True) + eps)
    return y if weight is None else y * weight


class Attention(nn.Module):
    def __init__(self, c, heads):
        super().__init__()
        self.heads = heads
        self.qkv = nn.Linear(c, 3 * c, bias=False)
        self.out = nn.Linear(c, c, bias=False)

    def forward(self, x):
        b, t, c = x.shape
        q, k, v = self.qkv(x).view(b, t, 3, self.heads, c // self.heads).permute(2, 0, 3, 1, 4)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        return self.out(y.transpose(1, 2).reshape(b, t, c))


class Mlp(nn.Module):
    def __init__(self, c):
        super().__init__()
        self.up = nn.Linear(c, 4 * c)
        self.down = nn.Linear(4 * c, c)

    def forward(self, x):
        return self.down(F.gelu(self.up(x), approximate="tanh"))


class Residual(nn.Module):
    def forward(self, x, f):
        return x + f(x)


class Hyper(nn.Module):
    """Hyper-connection with dynamic tanh maps (arXiv:2409.19606)."""

    def __init__(self, c, n, index):
        super().__init__()
        self.theta = nn.Parameter(torch.zeros(n + 2, c))
        self.alpha = nn.Parameter(torch.full((3,), 0.01))
        self.b_pre = nn.Parameter(torch.eye(n)[index % n].clone())
        self.b_post = nn.Parameter(torch.ones(n))
        self.b_res = nn.Parameter(torch.eye(n))

    def forward(self, x, f):
        h = torch.tanh(F.linear(rms(x), self.theta))  # [..., n, n + 2]
        h_pre = self.alpha[0] * h[..., 0] + self.b_pre
        h_post = self.alpha[1] * h[..., 1] + self.b_post
        h_res = self.alpha[2] * h[..., 2:].transpose(-1, -2) + self.b_res
        y = f((h_pre.unsqueeze(-2) @ x).squeeze(-2))
        return h_res @ x + h_post.unsqueeze(-1) * y.unsqueeze(-2)


class ManifoldConstrained(nn.Module):
    """The paper's mHC (arXiv:2512.24880): one projection for all maps, Sinkhorn-Knopp with 20 iterations."""

    def __init__(self, c, n, index, iterations=20):
        super().__init__()
        self.n, self.iterations = n, iterations
        self.phi = nn.Parameter(torch.zeros(n * (n + 2), n * c))
        self.alpha = nn.Parameter(torch.full((3,), 0.01))
        bias = torch.zeros(n * (n + 2))
        bias[2 * n:] = (-8 * (1 - torch.eye(n))).flatten()
        self.bias = nn.Parameter(bias)

    def forward(self, x, f):
        n = self.n
        h = F.linear(rms(x.flatten(-2)), self.phi)
        h_pre = torch.sigmoid(self.alpha[0] * h[..., :n] + self.bias[:n])
        h_post = 2 * torch.sigmoid(self.alpha[1] * h[..., n:2 * n] + self.bias[n:2 * n])
        z = wide(self.alpha[2] * h[..., 2 * n:] + self.bias[2 * n:]).view(*h.shape[:-1], n, n)
        m = torch.exp(z - z.amax((-1, -2), keepdim=True))
        for _ in range(self.iterations):
            m = m / m.sum(-1, keepdim=True)
            m = m / m.sum(-2, keepdim=True)
        y = f((h_pre.unsqueeze(-2) @ x).squeeze(-2))
        return m @ x + h_post.unsqueeze(-1) * y.unsqueeze(-2)


class AttentionResidual(nn.Module):
    """Attention over the embedding and the outputs of all layers so far (arXiv:2603.15031)."""

    def __init__(self, c):
        super().__init__()
        self.query = nn.Parameter(torch.zeros(c))
        self.norm = nn.Parameter(torch.ones(c))

    def forward(self, state, f):
        x, sources = state
        sources = [*sources, f(x)]
        v = torch.stack(sources)
        weights = torch.einsum("c,nbtc->nbt", self.query, rms(v, self.norm)).softmax(0)
        return torch.einsum("nbt,nbtc->btc", weights, v), sources


class Sublayer(nn.Module):
    def __init__(self, body, connection, c):
        super().__init__()
        self.norm = nn.Parameter(torch.ones(c))
        self.body, self.connection = body, connection

    def forward(self, x):
        return self.connection(x, lambda h: self.body(rms(h, self.norm)))


class Transformer(nn.Module):
    def __init__(self, options):
        super().__init__()
        c, n = options.channels, options.streams
        self.connection, self.streams = options.connection, n
        self.embed = nn.Embedding(options.vocab, c)
        self.pos = nn.Parameter(0.02 * torch.randn(options.context, c))
        make = {"residual": lambda i: Residual(), "hc": lambda i: Hyper(c, n, i),
                "mhc": lambda i: ManifoldConstrained(c, n, i),
                "attention-residual": lambda i: AttentionResidual(c)}[options.connection]
        layers = []
        for i in range(options.layers):
            layers += [Sublayer(Attention(c, options.heads), make(2 * i), c), Sublayer(Mlp(c), make(2 * i + 1), c)]
        self.layers = nn.ModuleList(layers)
        self.norm = nn.Parameter(torch.ones(c))
        self.head = nn.Linear(c, options.vocab, bias=False)

    def forward(self, tokens, targets):
        x = self.embed(tokens) + self.pos
        if self.connection in ("hc", "mhc"):
            x = x.unsqueeze(-2).expand(*x.shape[:-1], self.streams, x.shape[-1])
        elif self.connection == "attention-residual":
            x = x, [x]
        for layer in self.layers:
            x = layer(x)
        if self.connection in ("hc", "mhc"):
            x = x.mean(-2)
        elif self.connection == "attention-residual":
            x, _ = x
        logits = self.head(rms(x, self.norm))
        return F.cross_entropy(wide(logits).view(-1, logits.shape[-1]), targets.view(-1))


def flops_per_step(options):
    """Operations of the matrix products, without connections."""
    weights = options.layers * 12 * options.channels**2 + options.vocab * options.channels
    return options.batch * options.context * (6 * weights + 6 * options.layers * options.channels * options.context)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--connection", default="mhc", choices=("residual", "hc", "mhc", "attention-residual"))
    for name, default in (("channels", 384), ("layers", 6), ("heads", 6), ("context", 256), ("batch", 8), ("vocab", 65),
                          ("streams", 4), ("steps", 10), ("threads", 2)):
        parser.add_argument(f"--{name}", type=int, default=default)
    parser.add_argument("--dtype", default="f32", choices=("f32", "bf16"))
    parser.add_argument("--compile", action="store_true")
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    torch.manual_seed(0)
    model = Transformer(options)
    optimizer = torch.optim.AdamW(model.parameters(), lr=1e-3, betas=(0.9, 0.95), weight_decay=0.1)
    tokens, targets = torch.randint(options.vocab, (2, options.batch, options.context))
    run = torch.compile(model) if options.compile else model
    times = []
    for _ in range(WARM_UP + options.steps):
        start = time.perf_counter()
        with torch.autocast("cpu", torch.bfloat16, enabled=options.dtype == "bf16"):
            loss = run(tokens, targets)
        optimizer.zero_grad(set_to_none=True)
        loss.backward()
        torch.nn.utils.clip_grad_norm_(model.parameters(), 1.0)
        optimizer.step()
        times.append(time.perf_counter() - start)
    ms = 1e3 * statistics.median(times[WARM_UP:])
    tokens_per_step = options.batch * options.context
    print(json.dumps({"peer": f"pytorch {torch.__version__}" + " compile" * options.compile, **vars(options), "ms_per_step": round(ms, 2),
                      "tokens_per_s": round(1e3 * tokens_per_step / ms), "gflops": round(flops_per_step(options) / ms / 1e6, 1),
                      "loss": round(loss.item(), 4), "peak_rss_mb": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024}))


if __name__ == "__main__":
    main()
