; Tensor and data parallelism together are right for every size
;
; Proof state
; Holders of an element are the devices (x, owner(e)) for all x < D: each updates its own copy along dp, from equal gradients,
; and along tp the owner is the only holder.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const D Int)
(declare-const R Int)
(declare-const M Int)
(declare-const t Int)
(declare-const f Real)
(declare-const m Real)
(declare-const k Real)
(declare-const K Real)
(declare-const shares Real)
(assert (and (>= D 1) (>= R 1) (>= M 1) (>= t 1)))
(assert (= (* f (to_real t)) 1.0))
(assert (= (* m (to_real M)) f))
(assert (= shares 1.0))
(assert (= (* k (to_real D)) (* m shares)))
(assert (= (* K (to_real D) (to_real M) (to_real t)) 1.0))
(declare-fun owner (Int) Int)
(declare-const e Int)
(declare-const x Int)
(declare-const y Int)
(declare-const u Int)
(declare-const v Int)
(define-fun holds ((along_dp Int) (along_tp Int)) Bool (and (<= 0 along_dp) (< along_dp D) (= along_tp (owner e))))
(assert (and (holds x u) (holds y v)))
(assert (distinct u v))
(check-sat)
