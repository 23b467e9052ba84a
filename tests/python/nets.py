"""What several tests compile."""

import torch


class ConvNet(torch.nn.Module):
    """Four numbers for each image, and what they were made of."""

    def __init__(self):
        super().__init__()
        self.conv = torch.nn.Conv2d(3, 8, 3, padding=1)
        self.norm = torch.nn.BatchNorm2d(8)
        self.linear = torch.nn.Linear(8, 4)

    def forward(self, x):
        h = torch.relu(self.norm(self.conv(x)))
        return self.linear(h.mean((2, 3))), h
