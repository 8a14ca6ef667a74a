#ifndef CONTROLLER_REPORT_TEXT_H
#define CONTROLLER_REPORT_TEXT_H
/*
 * The parts of a report as text, for text.c, which puts them in order. Each writes nothing when it has
 * nothing to say; failures stick to the page.
 */
#include "controller/report/model.h"
#include "controller/report/page.h"

/* What was measured, where, when and how much of it; the warnings. text_job.c */
void text_put_job(struct page *p, const struct report *r);
/* A table for each group. text_group.c */
void text_put_groups(struct page *p, const struct report *r);
/* Start-up, memory and labels of the targets. text_target.c */
void text_put_targets(struct page *p, const struct report *r);
/* Targets that failed, and why. text_target.c */
void text_put_failures(struct page *p, const struct report *r);
/* Attempts that are in no figure, and why. text_group.c */
void text_put_invalid(struct page *p, const struct report *r);

/* Nothing will be added to it, unless it is resumed. */
bool text_is_over(const struct report *r);

#endif
