"""What is a credential, what only looks like one, and that none gets into a card, an answer or an error."""

from __future__ import annotations

import json
import time
from pathlib import Path

import pytest

from stages.card.credentials import hiding, looks_secret, secrets_in, without_secrets
from stages.card.store import changing, make_card
from tests.cli.test_commands import answer
from tests.cli.test_shell import run

_LONG = "abcdefghijklmnopqrstuvwxyzABCDEFGH"
SECRETS = [
    "password=hunter22",
    "password: hunter2",
    "password=hunter2$X",
    "MASTER_PASSWORD='hunter2'",
    "db_pwd=abcd12",
    '{"password": "hunter22"}',
    "{'api_key': 'abcd1234'}",
    "HF_TOKEN=abcdEFGH1234 python x.py",
    "HF_TOKEN=${HF_TOKEN:-abcdEFGH1234} python x.py",
    f"WANDB_API_KEY={'0123456789' * 4}",
    "export AWS_SECRET_ACCESS_KEY=wJalrXUtnFEMI/K7MDENG",
    'ray job submit --runtime-env-json=\'{"env_vars":{"HF_TOKEN":"abcdefgh"}}\'',
    "trainer.wandb_key=abcdef0123",
    "+api.apiKey=abcd1234",
    "--hf-token abcdefgh123",
    "--token=abcdef123456",
    "--api_key 12345678",
    "sshpass -p hunter2 ssh h",
    "sshpass -phunter2 ssh h",
    "curl -u bob:s3cret http://h",
    "mysql -uroot -phunter2 db",
    "docker login -u me -p hunter2 registry",
    f"wandb login {'0123456789abcdef' * 2}",
    "Authorization: Bearer abcdefgh123",
    "https://u:p4ss@h/x",
    f"https://ghp_{_LONG}12@github.com/x",
    "redis://:pw123@h:6379",
    "ssh://me:pass@h",
    "https://h/x?access_token=abcdef12345&x=1",
    "https://h/x?X-Amz-Signature=abcdef0123456789",
    f"hf_{_LONG}",
    "sk-proj-abcdefghijklmnopqrst12345678",
    "AKIAIOSFODNN7EXAMPLE",
    "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOjEyMzQ1.abcdefghijk",
    "-----BEGIN OPENSSH PRIVATE KEY-----",
]
NONE = [
    "vllm serve m --max-num-batched-tokens=8192 --max-tokens=4096",
    "--max-tokens 4096",
    "max_tokens: 4096",
    "max_token_len=16384 actor.ppo_max_token_len_per_gpu=24576",
    "num_tokens=123456789",
    "pad_token=<pad> eos_token: </s> image_token: <image>",
    "bos_token='<|im_start|>'",
    "--pad-token-id=151643",
    "tokenizer=/models/qwen3 --tokenizer Qwen/Qwen3-8B",
    "loss_agg_mode=token-mean rollout_is=token",
    "the token is not valid",
    "no password was given",
    "token=$HF_TOKEN",
    "HF_TOKEN=${HF_TOKEN:-none} run",
    'HF_TOKEN="$HF_TOKEN" WANDB_API_KEY=\\$WANDB_API_KEY run',
    '--api-key="$KEY"',
    "Authorization: Bearer $TOKEN",
    "password=*** secret=<your secret>",
    "HF_TOKEN_PATH=/run/token --token-file /x secret_file=/run/x",
    "password=/run/secrets/db",
    "PWD=/data/x",
    "cd $PWD; pwd",
    "/data/hf_models_qwen3_30b_instruct/x",
    "skip_special_tokens_in_output_is_on",
    "skywork-or1-math-7b-preview-long",
    "git@github.com:a/b ssh me@host http://127.0.0.1:8000/v1",
    "data.prompt_key=prompt reward_fn_key=data_source",
    "AUTH_EDIT_TARGET_CODE=yes",
]


@pytest.mark.parametrize("text", SECRETS)
def test_a_secret_is_seen_and_taken_out(text):
    assert looks_secret(text)
    hidden = without_secrets(text)
    assert "***" in hidden
    assert not looks_secret(hidden)


@pytest.mark.parametrize("text", NONE)
def test_what_only_looks_like_one_is_none(text):
    assert not looks_secret(text)
    assert without_secrets(text) == text


def test_in_structures():
    value = {
        "password": "hunter2",
        "words": ["sshpass", "-p", "hunter22", "ssh", "h"],
        "fine": ["--max-tokens", "4096"],
        "deep": {"x": {f"hf_{_LONG}": 1, "log": "token=abcdef12"}},
    }
    assert list(secrets_in(value)) == ["password", "words", "deep.x.#0", "deep.x.log"]
    hidden = hiding(value)
    assert not any(word in json.dumps(hidden) for word in ("hunter2", _LONG, "abcdef12"))
    assert (hidden["password"], hidden["fine"], hidden["words"][0]) == ("***", value["fine"], "sshpass")


def test_long_texts_take_no_time():
    start = time.process_time()
    for text in ("sk-" * 20_000, "a:" * 20_000, "://a" * 20_000, "curl -u " * 9000, "A" * 60_000, "eyJ" * 20_000):
        looks_secret(text)
    assert time.process_time() - start < 30  # what grows with the square of the length takes minutes


@pytest.fixture
def card(tmp_path: Path) -> Path:
    return make_card(tmp_path / "task")


@pytest.mark.parametrize(
    "fact",
    [
        "baseline_command=HF_TOKEN=abcdEFGH1234 bash run.sh",
        "train.prefix=sshpass -p hunter22 ssh node7",
        "infer.prefix=docker exec -e HF_TOKEN=abcdEFGH1234 c1",
        "model.path=https://u:hunter22@hub/m",
        f"constraints='the key is hf_{_LONG}'",
        "train.log=/x?access_token=abcdEFGH1234",
        "password=hunter22",
        "hunter22:password=abcdEFGH1234",
        f"hf_{_LONG}",
        f"usage=hf_{_LONG}",
    ],
)
def test_none_is_stored_or_said_again(card, fact):
    before = card.read_bytes()
    for options in ([], ["--json"]):
        done = run("task", "set", "usage=dump", fact, "--task", card, *options)
        assert done.returncode == 2
        said = done.stdout + done.stderr
        assert not any(word in said for word in (_LONG, "abcdEFGH1234", "=hunter22", "hunter22 ssh"))
    assert card.read_bytes() == before


def test_one_that_was_written_in_by_hand_is_not_shown_and_can_be_taken_out(card):
    data = json.loads(card.read_text())
    data["facts"]["baseline_command"] = "HF_TOKEN=abcdEFGH1234 bash run.sh"
    card.write_text(json.dumps(data))
    for words in (["show"], ["set", "usage=dump"]):
        for options in ([], ["--json"]):
            done = run("task", *words, "--task", card, *options)
            assert done.returncode == 2
            assert "facts.baseline_command" in done.stdout + done.stderr
            assert "abcdEFGH1234" not in done.stdout + done.stderr
    answer("task-set", "task", "set", "baseline_command=unknown", "--task", card)
    answer("task-card", "task", "show", "--task", card)


def test_a_line_of_the_log_has_none(card):
    with changing(card) as it:
        it.data["log"].append({"at": "2026-01-01T00:00:00Z", "what": "fine"})
    data = json.loads(card.read_text())
    data["log"].append({"at": "2026-01-01T00:00:00Z", "what": "password=hunter22"})
    card.write_text(json.dumps(data))
    done = run("task", "log", "--task", card)
    assert (done.returncode, "hunter22" in done.stdout + done.stderr) == (2, False)
