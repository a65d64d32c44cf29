; Pipeline and data parallelism together are right, tied embeddings included
;
; Proof layers
; A layer lies on one stage (chunk_coverage). Over the stages before n its gradient is there once, as soon as its stage is among
; them: this is the step, the base is n = 0. So on P stages nothing is missing, and no reduction over pp is needed.
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
(declare-fun on_stages (Int) Real)
(declare-const stage Int)
(declare-const gradient Real)
(define-fun claim ((m Int)) Bool (= (on_stages m) (ite (< stage m) gradient 0.0)))
(assert (and (<= 0 stage) (< stage P)))
(assert (= (on_stages 0) 0.0))
(assert (= (on_stages (+ n 1)) (+ (on_stages n) (ite (= n stage) gradient 0.0))))
(assert (claim n))
(assert (not (and (claim 0) (claim (+ n 1)))))
(check-sat)
