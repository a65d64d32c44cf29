; Shards of rounded-up length give every element exactly one owner
;
; Proof an_owner
; q = e div c is an owner: division leaves a remainder r with e = q*c + r, 0 <= r < c.
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
(declare-const r Int)
(assert (and (= e (+ (* q c) r)) (<= 0 r) (< r c)))
(assert (not (owns q)))
(check-sat)
