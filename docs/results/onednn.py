"""Prints oneDNN's rates for bf16 products through PyTorch, in GFLOP/s, and with a second argument
"llama" the prompt rate of a random llama-3.2-1b in bf16 through transformers.
Usage: onednn.py THREADS [llama]"""

import sys
import time

import torch

SHAPES = [(4096, 4096), (2048, 2048), (512, 2048), (8192, 2048), (2048, 8192)]


def best(run, seconds=0.15):
    """Returns the median time of a call."""
    run()
    times = []
    end = time.perf_counter() + seconds
    while time.perf_counter() < end or len(times) < 5:
        begin = time.perf_counter()
        run()
        times.append(time.perf_counter() - begin)
    return sorted(times)[len(times) // 2]


def products(threads):
    torch.set_num_threads(threads)
    for n, k in SHAPES if threads > 1 else SHAPES[:1]:
        weight = torch.randn(n, k, dtype=torch.bfloat16)
        for m in (16, 64, 512):
            x = torch.randn(m, k, dtype=torch.bfloat16)
            packed = torch.ops.mkldnn._reorder_linear_weight(weight, m)
            flop = 2 * m * n * k / 1e9
            linear = flop / best(lambda: torch.nn.functional.linear(x, weight))
            fast = flop / best(lambda: torch.ops.mkldnn._linear_pointwise(x, packed, None, "none", [], ""))
            print(f"oneDNN bf16,{threads},{m},{n},{k},packed {fast:.0f},linear {linear:.0f}", flush=True)


def llama(threads):
    from transformers import LlamaConfig, LlamaForCausalLM

    torch.set_num_threads(threads)
    config = LlamaConfig(hidden_size=2048, intermediate_size=8192, num_hidden_layers=16, num_attention_heads=32,
                         num_key_value_heads=8, head_dim=64, vocab_size=128256, tie_word_embeddings=True)
    torch.set_default_dtype(torch.bfloat16)
    model = LlamaForCausalLM(config).eval()
    ids = torch.randint(0, 128256, (1, 512))
    with torch.inference_mode():
        print(f"transformers bf16,{threads},prompt 512,{512 / best(lambda: model(ids, logits_to_keep=1), 5):.0f} tokens/s")


with torch.inference_mode():
    if "llama" in sys.argv[2:]:
        llama(int(sys.argv[1]))
    else:
        products(int(sys.argv[1]))
        products(1)
