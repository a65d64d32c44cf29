; Weights used on the first and the last stage are shares over those members only
;
; Proof step
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun count (Int) Int)
(declare-const N Int)
(declare-const n Int)
(define-fun claim ((m Int)) Bool (= (count m) (+ (ite (> m 0) 1 0) (ite (and (> m (- N 1)) (> N 1)) 1 0))))
(assert (and (>= N 1) (>= n 0) (< n N)))
(assert (= (count 0) 0))
(assert (= (count (+ n 1)) (+ (count n) (ite (or (= n 0) (= n (- N 1))) 1 0))))
(assert (claim n))
(assert (not (claim (+ n 1))))
(check-sat)
