; Shards of rounded-up length give every element exactly one owner
;
; Proof only_one
; Two owners are equal: else the chunk of the smaller one ends before the other begins.
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const e Int)
(declare-const q Int)
(assert (and (>= s 0) (>= N 1) (< (* (- c 1) N) s) (<= s (* c N))))
(assert (and (<= 0 e) (< e s)))
(define-fun owns ((x Int)) Bool (and (<= (* x c) e) (< e (* (+ x 1) c))))
(declare-const p Int)
(assert (>= c 1))
(assert (and (owns q) (owns p) (< p q)))
(check-sat)
