"""The step of bench/train_step.c in PyTorch, for an interpreter that has it.

usage: PYTHON bench/train_step.py [--threads N] [--steps N]"""

import argparse
import statistics
import time

import torch
from torch import nn
from torch.nn import functional as F

VOCABULARY, WIDTH, LAYERS, HEADS, BATCH, TIME = 512, 256, 4, 4, 8, 128


class Layer(nn.Module):
    def __init__(self):
        super().__init__()
        self.norm1, self.norm2 = nn.LayerNorm(WIDTH), nn.LayerNorm(WIDTH)
        self.qkv = nn.Linear(WIDTH, 3 * WIDTH, bias=False)
        self.out = nn.Linear(WIDTH, WIDTH, bias=False)
        self.up, self.down = nn.Linear(WIDTH, 4 * WIDTH), nn.Linear(4 * WIDTH, WIDTH)

    def forward(self, x):
        qkv = self.qkv(self.norm1(x)).view(BATCH, TIME, 3, HEADS, WIDTH // HEADS)
        q, k, v = qkv.permute(2, 0, 3, 1, 4).unbind(0)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.out(y.permute(0, 2, 1, 3).reshape(BATCH, TIME, WIDTH))
        return x + self.down(F.gelu(self.up(self.norm2(x)), approximate="tanh"))


class Model(nn.Module):
    def __init__(self):
        super().__init__()
        self.tokens, self.positions = nn.Embedding(VOCABULARY, WIDTH), nn.Embedding(TIME, WIDTH)
        self.layers = nn.ModuleList(Layer() for _ in range(LAYERS))
        self.norm, self.head = nn.LayerNorm(WIDTH), nn.Linear(WIDTH, VOCABULARY, bias=False)
        for p in self.parameters():
            if p.dim() == 2:
                nn.init.normal_(p, std=0.02)

    def forward(self, ids):
        x = self.tokens(ids) + self.positions.weight
        for layer in self.layers:
            x = layer(x)
        return self.head(self.norm(x))


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--steps", type=int, default=10)
    options = parser.parse_args()
    torch.set_num_threads(options.threads)
    words = torch.tensor([i * 7 % 101 + i % 3 for i in range(BATCH * TIME + 1)])
    ids, targets = words[:-1].view(BATCH, TIME), words[1:]
    model = Model()
    optimizer = torch.optim.AdamW(model.parameters(), lr=3e-4, weight_decay=0.01)
    losses, seconds = [], []
    for _ in range(options.steps + 1):
        begun = time.perf_counter()
        optimizer.zero_grad()
        loss = F.cross_entropy(model(ids).view(-1, VOCABULARY), targets)
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
        seconds.append(time.perf_counter() - begun)
    print(f"PyTorch {torch.__version__}, {options.threads} threads: loss {losses[0]:.4f} to "
          f"{losses[-1]:.4f}, {1e3 * statistics.median(seconds[1:]):.1f} ms a step")


if __name__ == "__main__":
    main()
