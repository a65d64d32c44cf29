; A broadcast makes values equal, and right only if the root's value was
;
; Proof copy
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun before (Int) Real)
(declare-const r Int)
(declare-const w Int)
(declare-const x Int)
(declare-const y Int)
(declare-const N Int)
(define-fun after ((z Int)) Real (before r))
(assert (and (<= 0 r) (< r N) (<= 0 x) (< x N) (<= 0 y) (< y N)))
(assert (= (before r) 1.0))
(assert (distinct (after x) 1.0))
(check-sat)
