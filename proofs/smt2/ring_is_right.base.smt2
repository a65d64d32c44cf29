; A ring adds every device's part exactly once in N - 1 steps
;
; Proof base
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun k (Int Int Int) Int)
(declare-const N Int)
(declare-const t Int)
(declare-const x Int)
(declare-const d Int)
(assert (and (>= N 1) (<= 0 x) (< x N) (<= 0 d) (< d N) (>= t 0)))
(define-fun before ((y Int)) Int (ite (= y 0) (- N 1) (- y 1)))
(define-fun dist ((y Int) (z Int)) Int (ite (>= y z) (- y z) (+ (- y z) N)))
(define-fun one ((b Bool)) Int (ite b 1 0))
(assert (= (k 0 x d) (one (= d x))))
(assert (distinct (k 0 x d) (one (<= (dist x d) 0))))
(check-sat)
