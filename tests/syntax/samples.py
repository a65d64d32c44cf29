"""Texts that use every statement of the language, in several shapes."""

SMALL = """\
mesh N
let P
weights model { size P }
batch over N
place model over N { params gathered, optimizer sharded, gradients sharded }
"""

CLUSTER = """\
# One training job on a cluster of eight-GPU machines.
mesh edp, ep = 2, tp = 8, 2 <= pp <= 16, cp <= 4   # five atoms
axis dp = edp * ep
axis world = dp * tp * pp
let h = 4096, L, heads = 32, rate = 0.5
assume heads % tp == 0, dp >= 2, 1 <= cp <= 4
import "lab/strategies.place"

batch over dp
sequence over cp
tokens over ep
tokens uneven
gradient_accumulation M
objective sum
feed same over edp*ep, cp
feed different over tp

loss mean over dp, microbatches, cp
loss aux sum
loss balance mean local
loss whole mean global
loss far mean over none

sync norm, bias over tp by none
sync * over microbatches by sum
sync * over dp, microbatches by mean
scale expert by 1/ep
scale * by -(h + 2)*3/tokens - L % 2

init norm different over tp
init * same
init router { different over dp
              broadcast over dp from 0 }
clip global_norm { expert over ep, edp    # what is not listed is summed over no axis
                   norm, bias over none
                   * over tp }
optimizer adamw
optimizer muon for matrix
optimizer muon for matrix, expert gathers over tp, edp*ep
optimizer adam_mini needs row along in for attn
optimizer adam_mini needs row for norm gathers over dp
optimizer own needs blocks of 128
optimizer own needs nothing for router
optimizer own needs whole gathers over tp
optimizer own needs matrix
random norm over tp same
random * over dp*cp different
precision { params bf16, compute bf16, gradients fp32, master fp32, moments fp32 }
precision lora {
  params bf16
  gradients bf16
}

weights attn { size 4*h*h*L, layers L, dims in out, kind matrix }
weights norm { size 2*h*L, kind vector }
weights embed { size V*h, kind embedding, used on first and last of pp }
weights head { used on last }
weights expert { size 8*3*h*h, kind expert, routed over edp*ep }
weights bare { }
freeze embed, head
stages over pp { schedule interleaved_1f1b, chunks 3 }
"""

LIBRARY = """\
strategy zero2(d) {
  batch over d
  place * over d { optimizer sharded, gradients sharded }
}
strategy fsdp(d, reshard_after_forward = true) {
  place * over d {
    params gathered on flat of all, optimizer sharded on flat of all
    gradients sharded on flat, activations replicated
    reshard_after_forward reshard_after_forward
  }
}
strategy offload(d = none) { place * over d { optimizer sharded offloaded } }
strategy nothing() { }

model llama(layers, hidden, heads, kv_heads = heads, ffn, vocab) {
  let head = hidden / heads
  weights attn { size 2*hidden*hidden*layers + 2*hidden*kv_heads*head*layers, layers layers, kind matrix }
}
model llama { layers 80, hidden 8192, heads 64, ffn 28672, vocab 128256 }

place a over dp = (S*, S(out), O(S), R)
place b over none = (M, O, O(S*))
place c over dp*ep, tp = (gathered on in, sharded offloaded, S*(out), materialized)
place d over none { activations materialized, optimizer offloaded, params O(S(layer)), gradients S }
place * over none { params R }

use zero2(dp) * llama_parallel(edp * ep, schedule = 1f1b, chunks = 3, shards = none) * offload()
use hsdp(shard = s, replicate = r), zero1(dp)
stages over pp
microbatches 8

spec first {
  mesh N
  use zero2(N)
  expect proved
}
spec second { expect refuted GI01 }
budget 80 GiB
budget 3/2*h GB
claim memory(zero3) * N == memory(data_parallel)
claim traffic(zero3) == 3/2 * traffic(data_parallel)
expect refuted GI01 norm
expect error PL300
expect vacuous
expect refuted norm
"""

STEPS = """\
step norm {                        # everything for norm
  scale loss aux by 1/dp
  scale loss by 2
  each microbatch { accumulate }
  each microbatch but last {
    reduce over dp by sum
    accumulate into main
  }
  each microbatch but first { }
  first microbatch { replace }
  last microbatch { replace into main }
  microbatch 2 { accumulate }
  gather gradients over dp
  scale by 1/M
  scale main by 1/tokens
  reduce over dp, cp by mean
  reduce main over edp*ep by sum
  reduce scattered over dp by mean
  reduce main scattered over dp by mean
  offload gradients
  skip on overflow over none
  skip on overflow over dp, tp
  clip
  update
  update from main
  refresh params from master
  fetch params
  gather params over dp
  broadcast params over dp from 3
}
step embed, head { update }
step * { }
"""

WORDS = """\
mesh first, over, by, mesh, last = 2
let size, place = over + 2, step
weights model { size P, dims size kind over, kind kind }
weights norm { size size }
place model over first, over { params sharded on on }
place weights over by = (S(S), S*(O), R)
sync over over over by mean
scale by by by
step step { update from from }
use use(mesh, over = first) * place(R)
clip clip { place over over }
optimizer for for for
optimizer needs needs row along row along for needs gathers over over
loss loss mean over over, microbatches
expect error error
"""
"""Keywords as names, wherever nothing else can be meant."""

BLOCKS = """\
dims batch, sequence, hidden = h, heads = a, head = h/a
dims ffn = 4*h,
     vocab
block begin {
  input ids(batch, sequence)   # whole numbers
  x = embedding ids with embed from vocab to hidden
}
block layer repeat L/2 {
  input x(batch, sequence, hidden)
  n = norm x with norm over hidden
  q = linear n with attn from hidden to heads, head
  qb = bias q with attn over heads, head
  k = linear n with attn from hidden to heads, head
  checkpoint {
    c = attention qb, k, k causal fused dropout positions
    cs = scale c by 1/2
  }
  both = concat cs, k, qb to head
  p = linear cs with attn from heads, head to hidden
  pb = bias p with out over hidden scaled by 1/tp
  r = reduce pb over tp, cp by mean
  d = dropout r
  y = add x, d, x
  m = norm y over hidden
  s = router m with router from hidden to expert top 2
  t = dispatch m by s
  g = grouped linear t with expert from hidden to ffn
  gg = gelu g
  gh = multiply g, gg
  z = grouped linear gh with expert from ffn to hidden
  out = combine z by s
  a = gather out over tp on sequence
  b = slice a over tp on sequence
  e = reduce_scatter b over tp on sequence
  f = all_to_all e over cp from sequence to hidden
  last = broadcast f over tp
}
block end {
  input x(batch, sequence, hidden)
  logits = linear x with embed from hidden to vocab
  loss = cross_entropy logits over vocab parallel
}
block words {
  input input(input)
  norm = norm input over over
  linear = silu norm
  block = relu linear
  linear = sigmoid with
  with = tanh to
  to = softplus from
  from = nonlinear of
  top = cross_entropy checkpoint over over
}
forward p of layer over tp by none scale 1/tp
backward n over tp by sum
backward attn over cp by zero
forward y over tp*cp by mean
backward n of layer over tp by slice
forward x of layer over tp by gather
checkpoint layer
checkpoint p of layer
checkpoint p to y of layer
checkpoint layer every 2*L
attention over cp, tp by ring
attention over cp*tp by all_to_all
attention over none by gather
random d of layer over tp same
random d of layer over tp*cp different
positions c of layer over cp local
positions c of layer over cp, tp global
"""

ALL = {"blocks": BLOCKS, "small": SMALL, "cluster": CLUSTER, "library": LIBRARY, "steps": STEPS, "words": WORDS}
