; A broadcast makes values equal, and right only if the root's value was
;
; Witness equal_but_wrong
; Replicas with 2 and 3 times the value agree afterwards, on a wrong one.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-fun before (Int) Real)
(declare-const r Int)
(declare-const w Int)
(declare-const x Int)
(declare-const y Int)
(declare-const N Int)
(define-fun after ((z Int)) Real (before r))
(assert (and (<= 0 r) (< r N) (<= 0 x) (< x N) (<= 0 y) (< y N)))
(assert (and (= N 2) (= r 0) (= x 0) (= y 1) (= (before 0) 2.0) (= (before 1) 3.0)))
(assert (and (= (after x) (after y)) (distinct (after y) 1.0)))
(check-sat)
