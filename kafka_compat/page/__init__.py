"""The web page of the brokers of this process and their cluster, at the HTTP listener.

Rendered here, by Jinja2, without JavaScript and without anything from elsewhere (docs/page.md,
docs/design/decisions/0017-page.md). Imported where `kafka.compat.http.page.enable` is true, and Jinja2 in a
thread once the brokers serve.

How to add a view
1. Write a module in `views/` with a coroutine `see(visit: Visit) -> Data`: what is to be seen, as
   json.dumps takes it, with units in its names. Long work is steps of `long_work`, finished by
   `visit.finish(steps)`.
2. Write its template in `templates/`, which extends `base.html` and finds the data as `it`. Everything
   that is put out is escaped. There are the filters of `rendering.py` and the macros of `macros.html`
   (tables that a phone shows as cards, filters, pages, tabs, figures); long lists go through
   `listing.py`. No script and no `style` attribute gets through the policy of the page: a share is a
   `<meter>`.
3. Tell of it in `views/__init__.py`: a `View` with its path, as `/topics`. The page is then at
   `/ui/topics`, and the same data at `/ui/topics.json`. Names of topics and groups are parameters
   (`?name=`), never parts of the path, since they may hold anything; in templates a link is
   `link("/topic", name=it.name)`. `below` is the entry of the menu that it belongs to;
   `rendering.py` has the menu, and the tabs of a topic and a group. Its template has the name of its path.
4. What is wrong with a request is a `BadCall` with a text that says what would be right, and a status.

How to change something
1. Write a coroutine `act(visit: Visit) -> Shown | Done`, and tell of it as an `Action`: POST, for forms
   and for JSON objects. `visit.body` has its fields; those of a form are texts. It is refused unless
   `kafka.compat.http.page.write.enable`: then `visit.may_write` is true, and so is `writes` in templates,
   which show its form only then.
2. The form has `{{ form_token() }}` in it: a hidden field without which it is not believed.
3. `Done` leads a browser to a page, and gives its data to programs; `Shown` renders a template (a dry
   run).

Who may do what
The page is a client of the brokers, with the principal of `kafka.compat.http.page.principal` and the
address of whoever looks. `await visit.ask(key, **fields)` has a broker serve a request of Kafka's
protocol, by the very handler that serves clients, which asks the authorizer: that is the way to change
anything, and the first choice to see something. `ask(key, version, broker_id, …)` asks another
broker: where that is in another process (`visit.is_here` tells), it comes from this broker and with its
rights, so `visit.rights` are to be asked before. Whoever reads the brokers' state by `visit.cluster` asks
`visit.rights.may_see_topic(name)`, or `may(operation, type, name)`, for all that is shown, and leaves out
what may not be seen; or `visit.rights.require(…)`, which raises the refusal.
"""
