; Neither condition implies the other
;
; Witness equal_and_wrong
; Copies were summed over two devices: both apply 8. State consistency holds, gradient integrity does not (GI02).
;
; Run it: z3 FILE, or cvc5 FILE. It must say sat.
(set-logic ALL)
(declare-const fed_a Real)
(declare-const fed_b Real)
(declare-const new_a Real)
(declare-const new_b Real)
(define-fun GI () Bool (and (= fed_a 4.0) (= fed_b 4.0)))
(define-fun equal () Bool (= new_a new_b))
(define-fun delivered () Bool (and (= new_a (- 10.0 fed_a)) (= new_b (- 10.0 fed_b))))
(assert (and delivered (= fed_a 8.0) (= fed_b 8.0)))
(assert (and equal (not GI) (distinct new_a 6.0)))
(check-sat)
