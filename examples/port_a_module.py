"""A transformer block in PyTorch, whose port is port_a_module.cpp. To record it again:

    tools/record_case.py examples/port_a_module.py:make_case --out examples/port_a_module.safetensors
"""
import math

import torch
from torch import nn


class Attention(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.heads = heads
        self.q, self.k, self.v, self.o = (nn.Linear(channels, channels, bias=False) for _ in range(4))
        self.softmax = nn.Softmax(dim=-1)

    def forward(self, x):
        split = lambda y: y.unflatten(-1, (self.heads, -1)).transpose(1, 2)  # [B, T, C] -> [B, H, T, D]
        q, k, v = split(self.q(x)), split(self.k(x)), split(self.v(x))
        future = torch.ones(x.shape[1], x.shape[1], dtype=torch.bool).triu(1)
        scores = (q @ k.mT / math.sqrt(q.shape[-1])).masked_fill(future, -math.inf)
        return self.o((self.softmax(scores) @ v).transpose(1, 2).flatten(-2))


class MLP(nn.Module):
    def __init__(self, channels, hidden):
        super().__init__()
        self.up, self.act, self.down = nn.Linear(channels, hidden), nn.GELU(approximate="tanh"), nn.Linear(hidden, channels)

    def forward(self, x):
        return self.down(self.act(self.up(x)))


class Block(nn.Module):
    def __init__(self, channels, heads):
        super().__init__()
        self.norm1, self.attention = nn.LayerNorm(channels), Attention(channels, heads)
        self.norm2, self.mlp = nn.LayerNorm(channels), MLP(channels, 4 * channels)

    def forward(self, x):
        x = x + self.attention(self.norm1(x))
        return x + self.mlp(self.norm2(x))


def make_case():
    block = Block(channels=16, heads=4)
    for p in block.parameters():
        nn.init.normal_(p, std=0.5)  # so that no bias is zero and no norm's weight is one
    return block, torch.randn(2, 6, 16)
