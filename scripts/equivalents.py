"""Mutants that no verdict can tell from the right rules, and why.

A row names a file, a function, a piece of `before => after`, and the reason.
"""

from __future__ import annotations

from typing import Protocol


class Mutant(Protocol):
    file: str
    where: str
    before: str
    after: str


WORDS = "only the wording or the place of a report"
SHORTCUT = "a shortcut: without it the same terms come out in a longer way"
NEVER = "cannot occur"
FURTHER = "which further faults are told of a spec that is refuted already"

REASONS: list[tuple[str, str, str, str]] = [
    # --- kinds.py
    ("prove/kinds.py", "spoil", "kind.mixed or when == FALSE => when == FALSE", "rules take what ruined a value off before they act, so nothing is spoiled twice but flat shards, at the same sizes"),
    ("prove/kinds.py", "spoil", "if kind.mixed or when == FALSE => if False", "rules take what ruined a value off before they act, so nothing is spoiled twice but flat shards, at the same sizes"),
    ("prove/kinds.py", "spoil", "kind.mixed or when == FALSE => kind.mixed", "ruined at no size is not ruined; only the words stay"),
    ("prove/kinds.py", "spoil", "=> replace(kind, ruined=when)", WORDS),
    ("prove/kinds.py", "_where_not_ruined", "fault", WORDS),
    ("prove/kinds.py", "gather", "Kind(kind.value, kind.root, tied=kind.tied) => Kind(kind.value, tied=kind.tied)", "the root is always device 0, the default"),
    ("prove/kinds.py", "route", "if kind.mixed => if False", "routing is the first thing that happens: nothing is mixed yet"),
    ("prove/kinds.py", "settle", "=> kind.cut is not None or kind.value == 'share'", "a cut by nothing is no cut"),
    ("prove/kinds.py", "settle", "=> room is None or kind.value == 'share'", "a cut other than the buffer's is SC03 already, from the placements"),
    # --- transfer.py
    ("prove/transfer.py", "Group.start", "Kind('root', 0) => Kind('root')", "0 is the default"),
    ("prove/transfer.py", "Group.start", "or () => stack(self.weights.params, axis)", "`own` and `routed` are said of cut parameters only"),
    ("prove/transfer.py", "Group.start", "self.members(axis) => self.sizes.size(axis)", "weights are not routed over the axis of their own stages"),
    ("prove/transfer.py", "Group._reduce", "into is None and op.scattered => op.scattered", "where gradients and optimizer state are cut differently the placements are SC03 already"),
    ("prove/transfer.py", "Group._reduce", "=> self.facts[axis].part == 'use'", "without a flat cut the sizes at which it spoils are none"),
    ("prove/transfer.py", "Group._reduce", "if i == index else kind => kinds.spoil(kind, sizes, fault)", "a value ruined along one axis is ruined"),
    ("prove/transfer.py", "Group._scatter_target", "'@'", "the name of a dimension that nothing else cuts"),
    ("prove/transfer.py", "Group._flat_cut", "self.members(axis) => self.sizes.size(axis)", "flat cuts over the axis of one's own stages are refused (PL319)"),
    ("prove/transfer.py", "Group._by", "self.members(axis) => self.sizes.size(axis)", "no tensor crosses along the axis of the stages, so nothing is lost there"),
    # --- values.py
    ("prove/values.py", "within_loop", "if TURN not in variables(formula) => if False", SHORTCUT),
    ("prove/values.py", "mark", "", "marks choose between two explanations, and a loop marks what it leaves twice"),
    ("prove/values.py", "unstable.change", "n is None", "a turn keeps the number of terms"),
    ("prove/values.py", "unstable.change", "TRUE if n", "kinds settle after two turns: a third one only changes scales"),
    ("prove/values.py", "unstable.change", "repeats", "marks choose between two explanations, and a loop marks what it leaves twice"),
    ("prove/values.py", "unstable", "zip(terms, after)", "a turn keeps the number of terms"),
    # --- run.py
    ("prove/run.py", "Run.__init__", "self._order = 1", "only the order of operations matters"),
    ("prove/run.py", "Run._loop", "loop.index or 0", "`microbatch 0` is refused (PL118), and an index is there where the subset says so"),
    ("prove/run.py", "Run._once", "if reached == TRUE else _indicator", "an indicator of what is always true is 1"),
    ("prove/run.py", "Run._once", "if reached == TRUE else join", SHORTCUT),
    ("prove/run.py", "Run._many", "if _only_adds(loop) => if False", SHORTCUT),
    ("prove/run.py", "Run._many", "if same(fresh, second) and same(before, again(before)) => if False", SHORTCUT),
    ("prove/run.py", "Run._later", "if same(fresh, second) => if False", SHORTCUT),
    ("prove/run.py", "Run._later", "mark(second) => second", "marks choose between two explanations, and a loop marks what it leaves twice"),
    ("prove/run.py", "Run._kept", "if same(one, two) => if False", SHORTCUT),
    ("prove/run.py", "Run._kept", "guard(two, two_turns)", "marks choose between two explanations, and a loop marks what it leaves twice"),
    ("prove/run.py", "Run._kept", "mark(two), two_turns)", "from three turns on the value is unknown, which is a violation as it is"),
    ("prove/run.py", "Run._kept", "mark(two)", "from three turns on the value is unknown, which is a violation as it is"),
    ("prove/run.py", "Run._many", "=> turns.constant is not None and 2 <= turns.constant <= MAX_UNROLLED", "where one of the two numbers is fixed both are"),
    ("prove/run.py", "Run._many", "=> turns.constant is not None and 1 <=", "one turn is followed exactly the other way too"),
    ("prove/run.py", "Run._many", "=> turns.constant is not None and 3 <=", "two turns are followed exactly the other way too"),
    ("prove/run.py", "Run._many", "=> turns.constant is not None and last.constant is not None", "a limit on time and room, no rule"),
    ("prove/run.py", "Run._many", "out = self._body(loop, out, self.group", "marks choose between two explanations, and a loop marks what it leaves twice"),
    ("prove/run.py", "Run._many", "self._clashes(loop, fresh, many) => nothing", "a second turn that meets a shard also reduces it again: the value itself is GI06"),
    ("prove/run.py", "Run._clashes", "", "a second turn that meets a shard also reduces it again: the value itself is GI06"),
    ("prove/run.py", "Run._arriving", "", "a second turn that meets a shard also reduces it again: the value itself is GI06"),
    ("prove/run.py", "Run._clash", "gradients.cut(axis) is None => if False", "a share beside a shard is never a right value, whatever room there is"),
    ("prove/run.py", "Run._clash", "continue", "a share beside a shard is never a right value, whatever room there is"),
    ("prove/run.py", "Run._clash", "any(", "all terms of one loss arrive in the same way"),
    ("prove/run.py", "Run._clash", "=> t.kinds[index].value == 'share'", "a share is never cut"),
    ("prove/run.py", "Run._clash", "self.group.members(axis) => self.group.sizes.size(axis)", "cuts over the axis of one's own stages are refused (PL319)"),
    ("prove/run.py", "Run._body", "self._order += self._listening => nothing", "only the order of operations matters, and nothing is compared with an accumulate"),
    ("prove/run.py", "Run._body", "if self._listening => if True", "while a loop is tried out, nothing arrives where something is held"),
    ("prove/run.py", "Run._body", "when.ran", "differs for two turns or more, where reading once per turn is wrong as it is"),
    ("prove/run.py", "Run._op", "when.ran, times", "differs for two turns or more, where reading once per turn is wrong as it is"),
    ("prove/run.py", "Run._op", "=> read = both(when.ran, which)", "differs for two turns or more, where skipping once per turn is wrong as it is"),
    ("prove/run.py", "Run._op", "self._gradient_op(op) => nothing", "only decides a note"),
    ("prove/run.py", "Run._op", "ScaleLoss(): raise", "elaboration lets a loss be scaled while its gradient is fresh only (PL331)"),
    # --- gradient.py
    ("prove/differ.py", "sum_differs", "if kind.mixed => if True", "ruined at no size adds nothing"),
    ("prove/differ.py", "sum_differs", "size == ONE or (kind.value == 'copy' and (not kind.tied)) => kind.value == 'copy' and (not kind.tied)", "with one device there is one coordinate, and the condition holds"),
    ("prove/differ.py", "sum_differs", "=> test('=', x, w)", "one share for all and a share of one's own are both wrong from two devices on, and right on one"),
    ("prove/differ.py", "sum_differs", "=> test('=', w, const(kind.root))", "one share for all and a share of one's own are both wrong from two devices on, and right on one"),
    ("prove/differ.py", "sum_differs", "if any((term.when != TRUE for term in terms)) => if True", "the bounds of a micro-batch that no term speaks of can always be met"),
    ("prove/differ.py", "sum_differs", "term.when != FALSE", "the bounds of a micro-batch that no term speaks of can always be met"),
    ("prove/differ.py", "sum_differs", "both(*ranges) if ranges else TRUE => both(*ranges)", "all of nothing is true"),
    ("prove/differ.py", "sum_differs", "if size == ONE or (kind.value == 'copy' and (not kind.tied)) => if False", "coordinates that no condition speaks of may be anything"),
    ("prove/differ.py", "sum_differs", "=> size == ONE", "coordinates that no condition speaks of may be anything"),
    ("prove/differ.py", "sum_differs", "=> ranges += [test('>', v)", "one piece of several shows what is lost of the others"),
    ("prove/differ.py", "sum_differs", "continue => nothing", "a copy is one wherever it is said to be from; a tied one is wrong from two devices on, whatever else is said of it"),
    ("prove/differ.py", "sum_differs", "if kind.tied => if True", "a share, or what one device had, is wrong from two devices on, whatever is lost of it"),
    ("prove/differ.py", "sum_differs", "if kind.value == 'copy' => if False", "a tied copy is wrong from two devices on, whatever else is said of it"),
    ("prove/differ.py", "without_factor", "", FURTHER),
    # --- state.py
    ("prove/state.py", "shards", "=> entry is not None", "a layout has a stack of cuts where it has a cut"),
    ("prove/state.py", "shards", "=> cut is not None", "a cut listed twice lines up with itself"),
    ("prove/state.py", "alignment_obligations", "if one.cut == other.cut => if False", "equal cuts are apart at no size"),
    ("prove/state.py", "alignment_obligations", "members(weights, sizes, atom) => sizes.size(atom)", "cuts over the axis of one's own stages are refused (PL319)"),
    ("prove/state.py", "optimizer_obligations", "broken[0] if broken else found[0]", WORDS),
    # --- publish.py
    ("prove/publish.py", "publication_obligations", "=> replace(one, violation=", WORDS),
    ("prove/publish.py", "publication_obligations", "=> replace(one, name=", "where another update is the last one, or none runs, the spec is refuted as it is (GI05, SC02)"),
    ("prove/publish.py", "_after", "place or where => where", WORDS),
    ("prove/publish.py", "_Copies.why", "", WORDS),
    ("prove/publish.py", "_Copies.move", "unlike[axis] != FALSE and self._apart(axis) == FALSE =>", WORDS),
    ("prove/publish.py", "_Copies.move", "self.early", WORDS),
    ("prove/publish.py", "_after", "publish.order >= updated", "no two operations have one place in the order"),
    ("prove/publish.py", "_after", "if weights.master => if True", "only how many conditions are counted: this one holds"),
    ("prove/publish.py", "_after", "if copies.hosted => if True", "only how many conditions are counted: this one holds"),
    ("prove/publish.py", "_after", "cuts[axis]", "only how many conditions are counted: these hold"),
    ("prove/publish.py", "_after", "continue", "only how many conditions are counted: these hold"),
    ("prove/publish.py", "_Copies._unlike", "all((shard", "shards along one axis that are cut in two ways do not line up (SC03)"),
    ("prove/publish.py", "_Copies._unlike", "=> shard.cut[0]", "all cuts of one stack are of one dimension"),
    ("prove/publish.py", "_Copies._unlike", "at_least(members(self.weights, self.sizes, axis), 1)", "along one device nothing is stale"),
    ("prove/publish.py", "_Copies._broadcast", "=> both(hit, publish.used)", "without a master or a host nothing writes it again: it is lost for good"),
    ("prove/publish.py", "_Copies._broadcast", "after or kept => kept", "without a master or a host nothing writes it again: it is lost for good"),
    ("prove/publish.py", "_Copies._broadcast", "arrived = either", "what arrives later is written over it, and must be gathered again as it is"),
    ("prove/publish.py", "_Copies._broadcast", "hit != ", WORDS),
    ("prove/publish.py", "_Copies._broadcast", "self.overwritten", WORDS),
    ("prove/publish.py", "_Copies._written", "negate(when)", "what is taken away here comes back in the next line, for the same sizes"),
    # --- start.py, whole.py
    ("prove/whole.py", "forward_obligations", "weights.master and (not weights.frozen) => weights.master", "frozen weights have no master copy"),
    ("prove/whole.py", "skip_obligations", "if reads => if True", "either all steps skip or none (PL333)"),
    ("prove/whole.py", "_over", ">= 1", WORDS),
    ("prove/whole.py", "_over", "if differ != FALSE", "only how many conditions are counted: this one holds"),
    ("prove/whole.py", "_over", "differ != TRUE", "only how many conditions are counted: this one holds"),
    ("prove/whole.py", "_differs", "kind.mixed", "a mixed value that decides is used by the update too: GI06"),
    ("prove/whole.py", "_differs", "kind.ruined", "a mixed value that decides is used by the update too: GI06"),
    ("prove/whole.py", "_sees_other", "kind.mixed", "a mixed value that decides is used by the update too: GI06"),
    ("prove/whole.py", "_sees_other", "kind.ruined", "a mixed value that decides is used by the update too: GI06"),
    # --- alignment.py
    ("prove/alignment.py", "apart", "if a == b => if False", "equal cuts are apart at no size"),
    ("prove/alignment.py", "apart", "return FALSE => return TRUE", "callers leave equal cuts out"),
    ("prove/alignment.py", "same_dimension", "[0][0]", "all cuts of one stack are of one dimension"),
    # --- of several files
    ("prove/values.py", "laid_out_apart", "members(weights, sizes, axis) => sizes.size(axis)", "flat cuts over the axis of one's own stages are refused (PL319)"),
    ("prove/run.py", "Run.run", "MAX_TERMS => if False", "a limit on time and room, no rule"),
    ("prove/run.py", "Run._clash", "if there != FALSE => if True", "a clash at no size violates nothing"),
    ("prove/run.py", "Run._gradient_op", "if self._listening => if True", "only decides a note"),
    ("prove/run.py", "_only_adds", "if Accumulate not in kinds => if True", SHORTCUT),
    ("prove/run.py", "_only_adds", "return False => return True", "a loop that accumulates nothing does not touch gradients (PL343); an update in it is GI05 as it is"),
    ("prove/run.py", "_is_whole", "kind.cut is None", "a mixed value is GI06 as it is"),
    ("prove/gradient.py", "_materialized", "=> weights.name in tied(program.layers.blocks)", "where there are blocks it follows from them where weights are used"),
    ("prove/gradient.py", "clip_obligations", "=> either(*(when for update, when in ends if update.order >= read.order))", "without an update the spec is refuted as it is"),
    ("prove/gradient.py", "clip_obligations", "own=not all(", "only which of two findings is told as the cause of the other"),
    ("prove/gradient.py", "clip_obligations", "=> either(*(both(when, wrong) for _, when, wrong in once))", "without an update the spec is refuted as it is"),
    ("prove/gradient.py", "clip_obligations", "if once else test('=', ", "without an update the spec is refuted as it is"),
    ("prove/gradient.py", "clip_obligations", "if ends else FALSE", "without an update the spec is refuted as it is"),
    ("prove/gradient.py", "clip_obligations", "=> many = both(", "of two updates that are each the last at some size both run at another: GI05 as it is"),
    ("prove/gradient.py", "clip_obligations", "own=False)", "only which of two findings is told as the cause of the other"),
    ("prove/gradient.py", "clip_obligations", "=> any((_alike(", "only which of two findings is told as the cause of the other"),
    ("prove/gradient.py", "clip_obligations", "if used == FALSE => if False", "only how many conditions are counted: these hold"),
    ("prove/gradient.py", "clip_obligations", "continue => nothing", "only how many conditions are counted: these hold"),
    ("prove/gradient.py", "clip_obligations", "if not late or not before(update) => if False", "only how many conditions are counted: these hold"),
    ("prove/gradient.py", "clip_obligations", "=> not late", "only how many conditions are counted: these hold"),
    ("prove/gradient.py", "_alike", "", "only which of two findings is told as the cause of the other"),
    ("prove/gradient.py", "clip_obligations", "=> not before(update)", "only how many conditions are counted: this one holds"),
    ("prove/gradient.py", "_norm", "not summed", WORDS),
    ("prove/state.py", "alignment_obligations", "continue => nothing", "equal cuts are apart at no size"),
    ("prove/state.py", "_whole", "dimension = cut[0][0]", "all cuts of one stack are of one dimension"),
    ("prove/state.py", "_whole", "axis in weights.routed and dimension != 'flat'", "a cut other than that of the params is SC03 as it is"),
    ("prove/state.py", "_whole", "=> axis in weights.routed and cut == stack(weights.params, axis)", "routed weights that are cut flat are refused (PL347)"),
    ("prove/state.py", "replica_obligations", "=> (made_alike := healed(axis)) == TRUE", "only how many conditions are counted: this one holds"),
    ("prove/state.py", "replica_obligations", "found[-1] if found else None => None", "only which values a report shows"),
    ("prove/state.py", "replica_obligations", "found[0]", "only which values a report shows"),
    ("prove/publish.py", "_after", "isinstance(p.op, GatherParams)", WORDS),
    ("prove/start.py", "start_obligations", "stages and apart != FALSE => stages", "only how many conditions are counted: this one holds"),
    ("prove/start.py", "start_obligations", "if cut is None => if True", "the broadcast over a cut axis is SC05 as it is"),
    ("elaborate/derive.py", "_step", "fact.part == 'item'", "dividing no term is nothing"),
    ("elaborate/derive.py", "_step", "if True", "dividing no term is nothing"),
    ("elaborate/derive.py", "_arrange", "r.inner and r.cut.dim == 'flat'", "reductions in the loop have a cut"),
    ("elaborate/derive.py", "_arrange.place", "3", "only the order counts"),
    ("elaborate/derive.py", "_grouped", "groups[-1][0]", "all of one group are alike"),
    # --- of layers
    ("layers/scale.py", "Scale.is_one", "=> not self.powers", "a factor is in a line that a person wrote, and there the other half decides"),
    ("layers/scale.py", "scale_of", "if below.number != 0", "zero below is refused before (PL401); anything else comes to the same factor, written otherwise"),
    ("layers/scale.py", "_product", "if total == 0 => if False", "zero times anything is worth zero in the formula too"),
    ("layers/values.py", "merged", "=> frozenset().union(*keys)", "the union of one set is that set"),
    ("layers/moving.py", "after", "", "how a tensor lies along an axis after it was told that it does not fit there (FW05) decides nothing more: on one device it does not matter"),
    ("layers/moving.py", "alone.change", "", "what is left of shares along an axis counts from two devices on, where FW05 is told already"),
    ("layers/moving.py", "moved_forward", "or '' => move.", "a move that cuts names its dimension: the rest is for the type checker"),
    ("layers/moving.py", "moved_backward", "or '' => move.", "a move that cuts names its dimension: the rest is for the type checker"),
    ("layers/operations.py", "is_name_only", "=> isinstance(op, bl.Elementwise) and op.factor == number(1)", "only `scale` has a factor"),
    ("layers/walk.py", "Walk._ordered", "", WORDS),
    ("layers/walk.py", "Walk._misfit", "(), True)", WORDS),
    ("layers/walk.py", "Walk._misfit", "=> None", WORDS),
    ("layers/walk.py", "Walk._collective_backward", "=> replace(arrived)", "the last move leaves it in this shape already"),
    ("layers/walk.py", "Walk.stands_still", "if signature(before) != signature(after) => if True", "following more layers than are needed comes to the same"),
    ("layers/flows.py", "_when", "=> tuple(known)", "all cases together are always"),
    ("layers/wants.py", "wants", "if result is not None => if True", "what is not wanted is looked up as None too"),
    ("layers/planning.py", "AxisPlan._common", "(None, None)", "where there are shares it is not asked what is cut"),
    ("layers/planning.py", "AxisPlan._combine", "=> made is not None and (made not in tokens)", "pieces of experts whose scores are whole were met before"),
    ("layers/planning.py", "AxisPlan._trades", "=> e.by == 'all_to_all'", "two axes that split the sequence, one of which trades, do not fit (PL386)"),
    # --- facts.py
    ("elaborate/facts.py", "_fact", "'absent', 'none', True", "where parameters are missing (FW01) nothing is routed"),
]  # fmt: skip


def reason(mutant: Mutant) -> str | None:
    change = f"{mutant.before} => {mutant.after}"
    return next(
        (why for file, where, part, why in REASONS if (file, where) == (mutant.file, mutant.where) and part in change),
        None,
    )
