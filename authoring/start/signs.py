"""What the three places of a precision capture look like in any framework: names, calls, and what stands around them."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from locales import _

TRIM, CAPTURE, SKIP, LINK = "trim", "capture", "skip", "link"
TRAIN, INFER = "train", "infer"
_LOG_PROB = r"log_?(probs?|ps)(?![a-z])"


def _words(*words: str) -> re.Pattern[str]:
    return re.compile("|".join(words), re.IGNORECASE)


@dataclass(frozen=True)
class Clue:
    """A sign, and what it is worth; negative ones speak against a place. ``about``: callee, name (of the function or its class),
    arguments, parameters, around (loops and ``with`` statements), module (a log-prob is computed in the file), path, test
    (the condition of an ``if``), target (what is assigned to), who (whose pass it is: the path, the name, the target, what is
    called and what is handed on)."""

    about: str
    words: re.Pattern[str]
    worth: int
    says: str


@dataclass(frozen=True)
class Shape:
    """A place: ``wanted`` are the words of a callee, an ``if``'s condition or an assignment's target that make a statement a
    candidate at all; ``verbs`` are tried in this order; below ``least`` a candidate is no help."""

    role: str
    about: str
    wanted: re.Pattern[str]
    clues: tuple[Clue, ...]
    verbs: tuple[str, ...]
    least: int
    title: str


_FORWARD = (
    r"^_?forward(_(micro_batch|step|pass|impl|batch|backward_batch|backward_func|log_?probs?|only))?$",
    r"^infer_batch$",
    r"^(actor|policy)$|^((actor|policy)_)?(model|module|net|engine)$",
)
REMOTE = "remote"
"""The word in front of a method's name where a call hands that on as a string: ``run_method(method_name="forward")``."""
_ENTRY = (
    rf"(^|_)(compute|get|calc\w*|forward|recompute|old|actor)\w*_{_LOG_PROB}",
    r"(^|_)infer_batch$",
    r"^forward_only\w*$",
)
_REMOTE_ENTRY = rf"(^|_)({REMOTE}|dispatch)_forward$"
_BUILDS = (
    r"get_data_iterator",
    r"(micro|mini|dynamic)_?batch",
    r"^get_batch$",
    r"^(split|chunk|select)$",
    r"make\w*iterator",
)
_DATA = r"^(\w*data|\w*batch(es)?|data_iterator|experiences?|samples?|sequences|\w*input_ids|\w*completion_ids|inputs)$"
REQUEST_ID = _words(r"^(request_id|rid|req_id|trace_id|uid)$")
_OTHER = r"critic|reward|value_model|(^|_|/)(sft|dpo|kto|orm|prm|rm|distill\w*|teacher)(_|/|\.|$)"
OURS = _words(r"(?<!ray)actor|policy", rf"(^|[_.])old_(\w+_)?{_LOG_PROB}")
TRAINS = _words(r"(^|[_./])train")
_THEIRS = _words(
    r"(?<!rollout)(^|[_./])ref[_.]",
    r"(?<!p)reference",
    r"critic(?!al)|teacher|reward_?model|value_?model|initial_model",
    rf"base_(\w+_)?{_LOG_PROB}",
)
_AGAINST = (
    Clue("path", _words(_OTHER, r"(^|/)(experimental|examples?|legacy|diffusion)(/|_)"), -3, _("another model's file")),
    Clue(
        "name",
        _words(_OTHER, r"(^|_)(loss|train\w*_step|update|backward_step)(_|$)"),
        -3,
        _("another pass"),
    ),
    Clue(
        "name",
        _words(r"(^|[_.])eval(uate|uation)?(_|\.|$)", r"(^|[_.])(infer|generate)(_(stream|full|one)\w*|_async)?$"),
        -4,
        _("no training pass"),
    ),
    Clue(
        "path", _words(r"(^|[/_])(infer(ence)?|eval(uat\w+)?|serv(e|ing)|deploy)(_|/|\.)"), -3, _("a file of inference")
    ),
    Clue("who", OURS, 2, _("the policy's")),
    Clue("who", _THEIRS, -4, _("another model's pass")),
)
_COMPUTES = Clue("module", _words(_LOG_PROB, "log_softmax"), 2, _("the file computes log-probs"))
_NO_GRAD = Clue("around", _words("no_grad", "inference_mode"), 2, _("without gradients"))
_MICRO = Clue("around", _words(r"^for .*(micro|mini|batch|chunk)"), 2, _("in a loop over batches"))
_BEHIND = Clue("arguments", _words("(^|_)logits(_chunk)?$"), -4, _("behind the forward already"))

_TRAIN = (
    Shape(
        TRIM,
        "callee",
        _words(*_ENTRY, _REMOTE_ENTRY, *_BUILDS),
        (
            Clue("callee", _words(*_ENTRY, _REMOTE_ENTRY), 4, _("starts the log-prob pass")),
            Clue(
                "callee", _words(*(rf"^(?!.*{_LOG_PROB}).*({word})" for word in _BUILDS)), 3, _("puts batches together")
            ),
            Clue("name", _words(_LOG_PROB), 3, _("its name speaks of log-probs")),
            Clue("arguments", _words(_DATA), 2, _("takes the data")),
            Clue("parameters", _words(_DATA), 1, _("gets the data")),
            Clue("target", _words(_LOG_PROB), 2, _("what it gives are log-probs")),
            Clue("around", _words(r"^for .*(micro|mini)"), -2, _("inside the forward already")),
            _BEHIND,
            Clue("parameters", _words("(^|_)logits$"), -4, _("behind the forward already")),
            Clue("around", _words("no_grad", "inference_mode"), 1, _("without gradients")),
            *_AGAINST,
        ),
        ("before",),
        7,
        _("1. trim place: where the input of the log-prob pass is built"),
    ),
    Shape(
        CAPTURE,
        "callee",
        _words(*_FORWARD, *_ENTRY),
        (
            Clue(
                "callee", _words(r"^_?forward_(micro_batch|step)$", r"^forward_backward_func$"), 4, _("one micro-batch")
            ),
            Clue("callee", _words(*_FORWARD), 3, _("runs the model")),
            Clue("name", _words(_LOG_PROB), 3, _("its name speaks of log-probs")),
            Clue("name", _words(r"(^|\.|_)(forward|infer)"), 1, _("its name speaks of the forward")),
            Clue("target", _words(_LOG_PROB), 2, _("what it gives are log-probs")),
            Clue("arguments", _words(r"^(input_ids|sequences)$"), 1, _("takes token ids")),
            _BEHIND,
            _NO_GRAD,
            _MICRO,
            _COMPUTES,
            *_AGAINST,
        ),
        ("around", "before"),
        7,
        _("2. capture place: the forward that computes the log-probs"),
    ),
    Shape(
        SKIP,
        "test",
        _words(r"reuse", r"bypass", r"skip", r"recompute", rf"(use|have|need|rollout)\w*_{_LOG_PROB}"),
        (
            Clue("test", _words(_LOG_PROB), 3, _("the condition speaks of log-probs")),
            Clue("test", _words(r"reuse", r"bypass", r"skip"), 3, _("the condition speaks of leaving something out")),
            Clue("body", _words(_LOG_PROB), 3, _("log-probs are computed below it")),
            *_AGAINST,
        ),
        (),
        6,
        _("   what may skip that forward: a condition around it"),
    ),
    Shape(
        LINK,
        "callee",
        _words(
            r"(^|_)generate(_|$)", r"^post$", r"add_request", r"^\w*(Token|Generat|Rollout|Agent)\w*Output$", r"uuid4"
        ),
        (
            Clue("arguments", REQUEST_ID, 4, _("hands a request id on")),
            Clue("target", _words(r"request_id|\brid\b|req_id"), 3, _("makes a request id")),
            Clue("callee", _words(r"(^|_)generate(_|$)", r"^post$", r"add_request"), 2, _("asks the engine")),
            Clue("callee", _words(r"Output$"), 2, _("the engine's answer")),
            Clue(
                "arguments",
                _words(r"payload|sampling_params|prompt_(ids|token_ids)|extra_fields|meta"),
                2,
                _("one request"),
            ),
            Clue(
                "name",
                _words(r"(^|\.)(async_)?(generate\w*|run|chat_completion)$"),
                2,
                _("its name speaks of generation"),
            ),
            Clue("around", _words(r"^async"), 1, _("one call for each request")),
            Clue("module", _words(r"meta_info", r"request_id"), 1, _("the file knows request ids")),
            Clue("path", _words(r"rollout|agent|engine|sampl|generat"), 1, _("a file of the rollout")),
            Clue(
                "name",
                _words(r"abort|cancel|log|health|profile|warm|flush|tool|search|judge|eval"),
                -4,
                _("no sampling"),
            ),
            Clue("path", _words(r"(^|/)(tools?|reward\w*|judge|eval\w*)(/|_)", _OTHER), -4, _("no sampling")),
        ),
        ("replace_expression", "after", "before"),
        7,
        _("3. request id: where a sample's request meets the engine"),
    ),
)
_INFER = (
    Shape(
        TRIM,
        "callee",
        _words(
            r"prepare\w*(input|extend|batch)",
            r"get_n(ew|ext)_batch\w*",
            r"^schedule$",
            r"ForwardBatch|ModelWorkerBatch",
        ),
        (
            Clue(
                "callee",
                _words(r"prepare\w*input", r"prepare_for_extend", r"get_new_batch_prefill"),
                4,
                _("lays the input"),
            ),
            Clue("callee", _words(r"batch|^schedule$"), 2, _("puts batches together")),
            Clue("name", _words(r"execute_model|run_batch|step|event_loop|prefill|forward"), 2, _("one engine step")),
            Clue("path", _words(r"model_runner|scheduler|core|worker"), 2, _("a file of the engine's loop")),
            Clue(
                "path",
                _words(r"spec_?decode|speculative|eagle|draft|mtp|encoder|multimodal|disagg"),
                -3,
                _("a side path"),
            ),
        ),
        ("after", "before"),
        6,
        _("1. trim place: where the input of an engine step is laid out"),
    ),
    Shape(
        CAPTURE,
        "callee",
        _words(
            r"^_?model_forward$", r"^(self_)?model$", r"^forward(_\w+)?$", r"run_model", r"forward_batch_generation"
        ),
        (
            Clue(
                "callee", _words(r"^_?model_forward$", r"^model$", r"forward_batch_generation"), 4, _("runs the model")
            ),
            Clue("callee", _words(r"^forward(_\w+)?$"), 2, _("runs a forward")),
            Clue(
                "name", _words(r"(^|\.|_)(execute_model|run_batch|forward\w*|_model_forward)$"), 3, _("one engine step")
            ),
            Clue("path", _words(r"model_runner|scheduler|tp_worker"), 3, _("a file of the engine's loop")),
            Clue("around", _words("inference_mode", "no_grad"), 1, _("without gradients")),
            Clue(
                "name",
                _words(r"dummy|warm|profile|capture|compile|graph|draft|spec|pool|encoder"),
                -3,
                _("no real step"),
            ),
            Clue(
                "path",
                _words(r"spec_?decode|speculative|eagle|draft|mtp|encoder|multimodal|cpu|xpu|tpu|(^|/)models/"),
                -2,
                _("a side path"),
            ),
        ),
        ("around", "before"),
        7,
        _("2. capture place: the model's forward of one engine step"),
    ),
    Shape(
        LINK,
        "target",
        _words(r"req(uest)?_ids?$", r"(^|\.)rids?$"),
        (
            Clue("target", _words(r"req(uest)?_ids$", r"(^|\.)rids$"), 3, _("the ids of a batch")),
            Clue("target", _words(r"req(uest)?_id$", r"(^|\.)rid$"), 1, _("one id")),
            Clue(
                "name",
                _words(r"execute_model|run_batch|forward|prepare|sample|process_batch|init_new"),
                3,
                _("one engine step"),
            ),
            Clue(
                "path",
                _words(r"model_runner|scheduler|input_batch|schedule_batch|forward_batch"),
                2,
                _("the engine's loop"),
            ),
            Clue(
                "name",
                _words(r"abort|cancel|finish|profile|dummy|free|remove|kv|transfer|connector|session"),
                -3,
                _("no step"),
            ),
            Clue(
                "path",
                _words(r"kv_(transfer|connector)|disagg\w*|entrypoints|openai|multimodal|lora"),
                -3,
                _("a side path"),
            ),
        ),
        ("after", "before"),
        7,
        _("3. request id: where a step knows the ids of its requests"),
    ),
)
SHAPES: Mapping[str, tuple[Shape, ...]] = {TRAIN: _TRAIN, INFER: _INFER}

WORTH_READING: Mapping[str, re.Pattern[bytes]] = {
    TRAIN: re.compile(
        rb"log_?prob|logps|log_softmax|forward_backward|request_id|req_id|\brid\b|meta_info|sampling_params"
    ),
    INFER: re.compile(rb"execute_model|model_runner|forward_batch|run_batch|req_ids|request_ids|\brids?\b"),
}
ASIDE = re.compile(
    r"(^|/)(tests?|docs?|examples?|benchmarks?|third_party|csrc|build|dist)(/|$)|(^|/)(test_[^/]*|conftest)\.py$"
)
