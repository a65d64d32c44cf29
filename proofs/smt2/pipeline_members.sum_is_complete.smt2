; Weights used on the first and the last stage are shares over those members only
;
; Proof sum_is_complete
; The gradient of tied weights is u(first) + u(last), one term per use. The sum over the members of [x is the member of
; this use] is 1 for each use; an average over the members is not, unless there is one.
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
(declare-const use Int)
(declare-const sum Real)
(declare-const members Int)
(assert (or (= use 0) (= use (- N 1))))
(assert (= members (ite (= N 1) 1 2)))
(assert (= sum (+ (ite (= use 0) 1.0 0.0) (ite (and (> N 1) (= use (- N 1))) 1.0 0.0))))
(assert (not (and (= sum 1.0) (= (= (/ sum (to_real members)) 1.0) (= N 1)))))
(check-sat)
