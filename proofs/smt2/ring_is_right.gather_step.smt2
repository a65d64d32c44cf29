; A ring adds every device's part exactly once in N - 1 steps
;
; Proof gather_step
; All-gather: has(t+1, x, d) = has(t, x, d) or has(t, x - 1, d), from has(0, x, d) = [x = d], is dist(x, d) <= t.
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
(declare-fun has (Int Int Int) Bool)
(assert (<= (+ t 1) (- N 1)))
(assert (= (has t (before x) d) (<= (dist (before x) d) t)))
(assert (= (has t x d) (<= (dist x d) t)))
(assert (= (has (+ t 1) x d) (or (has t x d) (has t (before x) d))))
(assert (distinct (has (+ t 1) x d) (<= (dist x d) (+ t 1))))
(check-sat)
