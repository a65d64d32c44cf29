"""Weights of a Megatron-LM model, one group for each way weights are treated.

ModelSizes come from the arguments; what they leave open (the vocabulary, a layer pattern) is open."""

from __future__ import annotations

from placelogic.frontends.config import Config, Setting
from placelogic.frontends.draft import Draft
from placelogic.frontends.megatron.sizes import ModelSizes
from placelogic.frontends.ranks import Mesh
from placelogic.problem import Problem


def write_weights(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh) -> None:
    """Declare the weights, and where they differ from others of their kind along tp."""
    hidden = config.get("hidden-size", int, None, least=1)
    heads = config.get("num-attention-heads", int, None, least=1)
    spec.let("hidden", hidden.value, hidden)
    spec.let("layers", sizes.layers.value, sizes.layers)
    _attention(config, spec, hidden, heads)
    gated = config.get("swiglu", bool, False)
    ffn = config.get("ffn-hidden-size", int, None, least=1)
    spec.let("ffn", ffn.value or (4 * hidden.value if hidden.given and not gated.value else None), ffn)
    spec.add(
        "weights",
        f"weights mlp {{ size layers*{3 if gated.value else 2}*hidden*ffn, layers layers, dims in out, kind matrix }}",
        gated,
    )
    _norms(config, spec, sizes)
    _ends(config, spec, sizes)
    if sizes.experts.value:
        _experts(config, spec, sizes, mesh, gated)
    _others(config, spec, sizes)


def _attention(config: Config, spec: Draft, hidden: Setting, heads: Setting) -> None:
    latent = config.get("multi-latent-attention", bool, False)
    pattern = config.get("hybrid-layer-pattern", str, also=["hybrid-override-pattern"])
    if latent.value or pattern.given:
        spec.let("attention", None, latent if latent.value else pattern)
        spec.add(
            "weights",
            "weights attn { size attention, layers layers, dims in out, kind matrix }",
            "its size is left open",
        )
        return
    grouped = config.get("group-query-attention", bool, False)
    groups = config.get("num-query-groups", int, None, least=1)
    channels = config.get("kv-channels", int, None, least=1)
    spec.let("heads", heads.value, heads)
    if channels.given or not (hidden.given and heads.given):
        width = channels.value
    else:
        width = hidden.value // heads.value if hidden.value % heads.value == 0 else None
    spec.let("head_dim", width, channels)
    kv = "groups" if grouped.value and groups.given else "heads"
    if kv == "groups":
        spec.let("groups", groups.value, groups)
    spec.add(
        "weights",
        f"weights attn {{ size layers*(2*hidden*heads*head_dim + 2*hidden*{kv}*head_dim), layers layers, dims in out, kind matrix }}",
    )


def _norms(config: Config, spec: Draft, sizes: ModelSizes) -> None:
    rms = config.get("normalization", str, "LayerNorm")
    each = 1 if rms.value == "RMSNorm" else 2
    vector = "hidden" if each == 1 else "2*hidden"
    spec.add("weights", f"weights norm {{ size layers*{2 * each}*hidden, layers layers, kind vector }}", rms)
    spec.add("weights", f"weights final_norm {{ size {vector}, kind vector, used on last }}" if sizes.pp.value > 1 else
             f"weights final_norm {{ size {vector}, kind vector }}")  # fmt: skip
    bias = config.get("disable-bias-linear", bool, False, also=["no-bias-linear"])
    if not bias.value:
        spec.add("weights", "weights bias { size layers*2*hidden, layers layers, kind vector }",
                 "biases behind row-parallel layers; those of column-parallel ones are cut with their matrices")  # fmt: skip
    norm = config.get("qk-layernorm", bool, False)
    if norm.value and not config.get("multi-latent-attention", bool, False).value:
        spec.add("weights", f"weights qk_norm {{ size layers*{2 * each}*head_dim, layers layers, kind vector }}", norm)
        if sizes.tp.value > 1:
            spec.add(
                "state", "place qk_norm over tp { activations sharded on heads }", "each device of tp has its own heads"
            )
            spec.add("step", "sync qk_norm over tp by sum",
                     "finalize_model_grads.py: q_layernorm and k_layernorm are summed in any case")  # fmt: skip


def _ends(config: Config, spec: Draft, sizes: ModelSizes) -> None:
    """The embedding, at both ends where it is tied or a multi-token prediction head uses it."""
    untied = config.get("untie-embeddings-and-output-weights", bool, False)
    vocab = config.get("vocab-size", int, None, also=["padded-vocab-size"], least=1)
    spec.let("vocab", vocab.value, vocab)
    extra = config.get("mtp-num-layers", int, 0)
    both = not untied.value or bool(extra.value)
    pipe = sizes.pp.value > 1
    ends = ", used on first and last" if both and pipe else ", used on first" if pipe else ""
    spec.add(
        "weights", f"weights embed {{ size vocab*hidden, kind embedding{ends} }}", untied, extra if extra.given else ""
    )
    if both and pipe:
        spec.add("step", "sync embed over pp by sum", "finalize_model_grads.py: _allreduce_word_embedding_grads")
    if untied.value:
        spec.add(
            "weights", f"weights head {{ size vocab*hidden, kind embedding{', used on last' if pipe else ''} }}", untied
        )
    where = config.get("position-embedding-type", str, "learned_absolute")
    length = config.get("max-position-embeddings", int, None, least=1)
    old = config.get("use-rotary-position-embeddings", bool, False)
    if where.value == "learned_absolute" and not old.value:
        spec.let("positions", length.value, length)
        spec.add(
            "weights",
            f"weights position {{ size positions*hidden, kind vector{', used on first' if pipe else ''} }}",
            where,
        )
        if sizes.sp:
            spec.add("state", "place position over tp { activations replicated }",
                     "added before the sequence is split (language_model_embedding.py)")  # fmt: skip
            spec.add("step", "sync position over tp by none")
    elif where.value not in ("learned_absolute", "rope", "mrope", "yarn", "none", "relative"):
        raise config.wrong("PL503", where, f"the position embedding `{where.value}` is not known here")


def _experts(config: Config, spec: Draft, sizes: ModelSizes, mesh: Mesh, gated: Setting) -> None:
    width = config.get("moe-ffn-hidden-size", int, None, least=1)
    spec.let("experts", sizes.experts.value, sizes.experts)
    spec.let("expert_ffn", width.value, width)
    spec.let("moe_layers", None, "not every layer need have experts")
    routed = mesh.routed()
    over = f", routed over {'*'.join(routed)}" if routed else ""
    spec.add("weights", f"weights expert {{ size moe_layers*experts*{3 if gated.value else 2}*hidden*expert_ffn, layers moe_layers, kind expert{over} }}",
             sizes.ep)  # fmt: skip
    spec.add("weights", "weights router { size moe_layers*experts*hidden, layers moe_layers, kind router }")
    if sizes.etp.value > 1 and not config.get("disable-bias-linear", bool, False, also=["no-bias-linear"]).value:
        config.problems.append(Problem("PL503", "biases of experts under expert tensor parallelism are added on every device: to check that "
                                       "takes the operations of a layer", sizes.experts.span,
                                       "`--set disable-bias-linear=true` checks the rest"))  # fmt: skip
    shared = config.get("moe-shared-expert-intermediate-size", int, None, least=1)
    if shared.given:
        spec.let("shared_ffn", shared.value, shared)
        spec.add(
            "weights",
            f"weights shared_expert {{ size moe_layers*{3 if gated.value else 2}*hidden*shared_ffn, layers moe_layers, kind matrix }}",
            shared,
        )


def _others(config: Config, spec: Draft, sizes: ModelSizes) -> None:
    """Layers of other kinds, whose sizes are left open."""
    linear = config.get("experimental-attention-variant", str)
    if linear.given and linear.value == "gated_delta_net":
        spec.let("delta", None, linear)
        spec.let("delta_norm_size", None)
        spec.add("weights", "weights delta_net { size delta, layers layers, kind matrix }", linear)
        spec.add("weights", "weights delta_norm { size delta_norm_size, layers layers, kind vector }",
                 "its output norm, whole on every device of tp and used on local heads")  # fmt: skip
        if sizes.tp.value > 1:
            spec.add(
                "state",
                "place delta_norm over tp { activations sharded on heads }",
                "gated_delta_net/common.py: out_norm",
            )
            spec.add("step", "sync delta_norm over tp by sum", "finalize_model_grads.py")
    elif linear.given:
        message = f"the attention variant `{linear.value}` is not modelled: it has weights and losses of its own"
        hint = "`--set experimental-attention-variant=null` checks the rest"
        config.problems.append(Problem("PL503", message, linear.span, hint))
    offsets = config.get("softmax-type", str, "vanilla")
    if offsets.value == "learnable":
        spec.add("weights", "weights softmax_offset { size layers*heads, layers layers, kind vector }", offsets)
        if sizes.tp.value > 1:
            spec.add(
                "state",
                "place softmax_offset over tp { params sharded, optimizer sharded, gradients sharded }",
                "cut with the heads",
            )
    pattern = config.get("hybrid-layer-pattern", str, also=["hybrid-override-pattern"])
    if pattern.given:
        spec.let("mixers", None, pattern)
        spec.add("weights", "weights mamba { size mixers, layers layers, kind matrix }", "cut over tp with their heads")
    extra = config.get("mtp-num-layers", int, 0)
    if extra.value:
        spec.let("mtp", None, extra)
        end = ", used on last" if sizes.pp.value > 1 else ""
        spec.add("weights", f"weights mtp_layers {{ size mtp, kind matrix{end} }}", extra)
