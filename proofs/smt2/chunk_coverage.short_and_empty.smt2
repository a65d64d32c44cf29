; Shards of rounded-up length give every element exactly one owner
;
; Witness short_and_empty
; s = 5 over N = 4: chunks of 2, so device 2 has one element and device 3 none.
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const s Int)
(declare-const N Int)
(declare-const c Int)
(declare-const e Int)
(declare-const q Int)
(assert (and (>= s 0) (>= N 1) (< (* (- c 1) N) s) (<= s (* c N))))
(assert (and (<= 0 e) (< e s)))
(define-fun owns ((x Int)) Bool (and (<= (* x c) e) (< e (* (+ x 1) c))))
(assert (and (= s 5) (= N 4) (= c 2) (= e 4) (= q 2)))
(assert (owns q))
(assert (not (< (* 3 c) s)))
(check-sat)
