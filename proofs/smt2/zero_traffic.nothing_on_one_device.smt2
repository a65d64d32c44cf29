; ZeRO-3 sends 3/2 of what data parallelism sends, for every N
;
; Proof nothing_on_one_device
;
; Run it: z3 FILE, or cvc5 FILE. It must say unsat.
(set-logic ALL)
(declare-const N Int)
(declare-const M Int)
(declare-const s Real)
(declare-const r Real)
(assert (and (>= N 1) (>= M 1) (> s 0.0) (= (* (to_real N) r) (* (to_real (- N 1)) s))))
(define-fun data_parallel () Real (* 2.0 r))
(define-fun zero1 () Real (+ r r))
(define-fun zero3 ((turns Int)) Real (+ (* (to_real turns) (+ r r)) r))
(assert (= N 1))
(assert (distinct r 0.0))
(check-sat)
