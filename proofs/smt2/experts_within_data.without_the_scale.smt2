; Experts routed within data parallelism need a division that routing does not do
;
; Proof without_the_scale
; `averaged` is K times ep: right only at ep = 1.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const edp Int)
(declare-const ep Int)
(declare-const M Int)
(declare-const t Int)
(declare-const f Real)
(declare-const averaged Real)
(declare-const k Real)
(declare-const K Real)
(declare-const over_ep Real)
(declare-const over_edp Real)
(assert (and (>= edp 1) (>= ep 1) (>= M 1) (>= t 1) (= over_ep 1.0) (= over_edp 1.0)))
(assert (= (* f (to_real t) (to_real M)) 1.0))
(assert (= (* averaged (to_real edp)) (* f over_ep over_edp)))
(assert (= (* k (to_real ep)) averaged))
(assert (= (* K (to_real edp) (to_real ep) (to_real t) (to_real M)) 1.0))
(assert (and (= k K) (> K 0.0)))
(assert (distinct (= averaged K) (= ep 1)))
(check-sat)
