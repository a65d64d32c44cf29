; States cut by the same rule line up, for every size; other rules may not
;
; Proof one_place
; Owner and place in the shard are determined: two solutions are the same, since (q - p)*c is a difference of two numbers below c.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const c Int)
(declare-const e Int)
(declare-const q Int)
(declare-const j Int)
(assert (and (>= c 1) (>= e 0)))
(define-fun at ((x Int) (i Int) (chunk Int)) Bool (and (= e (+ (* x chunk) i)) (<= 0 i) (< i chunk)))
(declare-const p Int)
(declare-const i Int)
(assert (and (at q j c) (at p i c)))
(assert (not (and (= q p) (= j i))))
(check-sat)
