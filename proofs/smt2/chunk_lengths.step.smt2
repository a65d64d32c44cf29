; The shards together are the tensor, and no cut has a smaller largest shard
;
; Proof step
; `start` is n*c; the next shard starts at start + c.
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
(assert (= (total n) (least start s)))
(assert (distinct (total (+ n 1)) (least (+ start c) s)))
(check-sat)
