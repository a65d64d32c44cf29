; Pipeline and data parallelism together are right, tied embeddings included
;
; Proof tied
; Averaged over dp and summed over both members: D times the result is the sum of all 2*D contributions.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun first (Int) Real)
(declare-fun last (Int) Real)
(declare-fun sum_first (Int) Real)
(declare-fun sum_last (Int) Real)
(declare-fun sum_both (Int) Real)
(declare-const n Int)
(declare-const D Int)
(declare-const P Int)
(assert (and (>= n 0) (>= D 1) (>= P 1)))
(assert (and (= (sum_first 0) 0.0) (= (sum_last 0) 0.0) (= (sum_both 0) 0.0)))
(assert (= (sum_first (+ n 1)) (+ (sum_first n) (first n))))
(assert (= (sum_last (+ n 1)) (+ (sum_last n) (last n))))
(assert (= (sum_both (+ n 1)) (+ (sum_both n) (+ (first n) (last n)))))
(declare-const result Real)
(declare-const mean_first Real)
(declare-const mean_last Real)
(assert (= (* mean_first (to_real D)) (sum_first D)))
(assert (= (* mean_last (to_real D)) (sum_last D)))
(assert (= result (+ mean_first mean_last)))
(assert (= (sum_both D) (+ (sum_first D) (sum_last D))))
(assert (distinct (* result (to_real D)) (sum_both D)))
(check-sat)
