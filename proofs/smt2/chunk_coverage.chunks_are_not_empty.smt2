; Shards of rounded-up length give every element exactly one owner
;
; Proof chunks_are_not_empty
; There is an element, so c >= 1 and dividing by it makes sense.
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
(assert (< c 1))
(check-sat)
