"""Files that belong to none of the frameworks that are imported: real ones in small, and random ones."""

from __future__ import annotations

import json
from collections.abc import Iterator
from random import Random

SMALL = {
    "package.json": '{"name": "site", "version": "1.0.0", "scripts": {"build": "vite"}, "dependencies": {"vite": "^5"}}',
    "tsconfig.json": '{"compilerOptions": {"target": "es2022", "strict": true}}',
    "config.json": '{"architectures": ["LlamaForCausalLM"], "hidden_size": 4096, "num_hidden_layers": 32}',
    "compose.yaml": "services:\n  web:\n    image: nginx\n    ports: ['80:80']\n",
    "ci.yml": "on: push\njobs:\n  test:\n    runs-on: ubuntu-latest\n    steps:\n      - run: make\n",
    "pod.yaml": "apiVersion: v1\nkind: Pod\nmetadata: {name: a}\nspec: {containers: []}\n",
    "Cargo.toml": '[package]\nname = "tool"\nversion = "0.1.0"\n',
    "pyproject.toml": '[project]\nname = "tool"\n\n[tool.ruff]\nline-length = 100\n',
    "list.sh": "ls --all --human-readable\n",
    "clean.sh": "#!/bin/sh\nset -e\nrm --recursive build\nmake --jobs 4 install\n",
    "neox.yml": '{"pipe-parallel-size": 2, "model-parallel-size": 4, "num-layers": 12, "gradient_clipping": 1.0}',
    "maxtext.yml": "base_config: base.yml\nici_fsdp_parallelism: 8\nper_device_batch_size: 4\n",
    "tune.yaml": "model:\n  _component_: torchtune.models.llama3.llama3_8b\nbatch_size: 2\ngradient_accumulation_steps: 8\n",
    "automodel.yaml": "step_scheduler: {global_batch_size: 64}\ndistributed: {strategy: fsdp2}\n",
    "nemo.yaml": "trainer: {devices: 8}\nmodel: {tensor_model_parallel_size: 2, micro_batch_size: 1}\n",
    "foundry.yaml": "global_train_batch_size: 256\ndevice_train_microbatch_size: 4\nfsdp_config: {sharding_strategy: FULL_SHARD}\n",
    "ppo.yaml": "actor_rollout_ref: {actor: {ppo_mini_batch_size: 64}}\ntrainer: {nnodes: 1}\n",
    "litgpt.yaml": "out_dir: out\nprecision: bf16-true\ntrain: {global_batch_size: 16, micro_batch_size: 4}\n",
    "lightning.yaml": "trainer: {strategy: ddp, accumulate_grad_batches: 4, gradient_clip_val: 1.0}\n",
    "factory.yaml": "stage: sft\nfinetuning_type: lora\ngradient_accumulation_steps: 8\n",
    "swift.yaml": "model: Qwen/Qwen3-8B\ntuner_type: lora\ngradient_accumulation_steps: 4\n",
    "trainer.yaml": "per_device_train_batch_size: 4\ngradient_accumulation_steps: 8\nmax_grad_norm: 1.0\n",
    "paddle.json": '{"tensor_parallel_degree": 4, "pipeline_parallel_degree": 2, "sharding": "stage2"}',
    "prime.toml": "[trainer]\nmax_steps = 10\n\n[orchestrator]\nbatch_size = 64\n",
    "ppo.sh": "python3 -m verl.trainer.main_ppo --num-layers 4 trainer.nnodes=1\n",
    "rlhf.sh": "deepspeed --module openrlhf.cli.train_sft --max_len 2048 --micro-batch-size 2\n",
    "swift.sh": "swift sft --model a --tensor-model-parallel-size 2\n",
    "slime.sh": "python train.py --actor-num-nodes 1 --tensor-model-parallel-size 2\n",
    "hf.sh": "python run_clm.py --per_device_train_batch_size 4 --gradient_accumulation_steps 2\n",
    "recipe.py": "from nemo.collections import llm\nstrategy = nl.MegatronStrategy(tensor_model_parallel_size=2)\n",
}

WORDS = ("name", "size", "path", "debug", "port", "level", "user", "host", "mode", "count", "color", "items", "retry", "token")


def drawn(seed: int) -> tuple[str, str]:
    """A random JSON, YAML, TOML or shell file: its name and its text."""
    random = Random(seed)
    entries = {random.choice(WORDS): _value(random, 2) for _ in range(random.randint(1, 8))}
    match seed % 4:
        case 0:
            return f"r{seed}.json", json.dumps(entries)
        case 1:
            return f"r{seed}.yaml", json.dumps(entries, indent=2)
        case 2:
            flat = {name: value for name, value in entries.items() if not isinstance(value, dict)}
            return f"r{seed}.toml", "[main]\n" + "".join(f"{name} = {json.dumps(value)}\n" for name, value in flat.items())
        case _:
            return f"r{seed}.sh", "run " + " ".join(f"--{name} {random.randint(0, 9)}" for name in entries) + "\n"


def _value(random: Random, depth: int) -> object:
    if depth and random.random() < 0.3:
        return {random.choice(WORDS): _value(random, depth - 1) for _ in range(random.randint(1, 4))}
    return random.choice([random.randint(0, 99), random.choice(WORDS), True, [1, 2, 3], 0.5])


def foreign(count: int = 200) -> Iterator[tuple[str, str]]:
    """So many files, by name and text."""
    yield from SMALL.items()
    for seed in range(count - len(SMALL)):
        yield drawn(seed)
