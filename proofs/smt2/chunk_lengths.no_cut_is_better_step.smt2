; The shards together are the tensor, and no cut has a smaller largest shard
;
; Proof no_cut_is_better_step
; If each of n devices holds at most c - 1 elements, together they hold at most n*(c - 1).
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-fun total (Int) Int)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const n Int)
(declare-const start Int)
(define-fun least ((a Int) (b Int)) Int (ite (<= a b) a b))
(define-fun len ((x_c Int)) Int (let ((left (least c (- s x_c)))) (ite (< left 0) 0 left)))
(assert (and (>= s 0) (>= N 1) (>= c 0) (< (* (- c 1) N) s) (<= s (* c N))))
(assert (and (>= n 0) (= start (* n c))))
(assert (= (total 0) 0))
(assert (= (total (+ n 1)) (+ (total n) (len start))))
(declare-fun any (Int) Int)
(declare-fun sum (Int) Int)
(assert (<= (any n) (- c 1)))
(assert (= (sum (+ n 1)) (+ (sum n) (any n))))
(assert (<= (sum n) (* n (- c 1))))
(assert (> (sum (+ n 1)) (* (+ n 1) (- c 1))))
(check-sat)
