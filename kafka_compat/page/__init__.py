"""Web page of the brokers of this process and their cluster, served by the HTTP listener.

Rendered by Jinja2 on the broker, without JavaScript or external resources (docs/page.md,
docs/design/decisions/0017-page.md). Imported if `kafka.compat.http.page.enable` is true; Jinja2 is imported
in a thread once the brokers serve.

How to add a view
1. Write a module in `views/` with a coroutine `see(visit: Visit) -> Data` that returns the data to show, as
   json.dumps takes it, with units in the names. Long work is a generator of `long_work` that yields to the
   event loop; `visit.finish(steps)` runs it.
2. Write its template in `templates/`. It extends `base.html` and accesses the data as `it`. All output is
   escaped. Use the filters of `rendering.py` and the macros of `macros.html` (tables that become cards on a
   phone, filters, pagination, tabs, figures), and `listing.py` for long lists. The page's policy blocks
   scripts and `style` attributes: show a share as a `<meter>`.
3. Register it in `views/__init__.py` as a `View` with its path, such as `/topics`. The page is then at
   `/ui/topics`, and its data at `/ui/topics.json`. Names of topics and groups are parameters (`?name=`),
   never parts of the path, since they may contain any character; templates link with `link("/topic",
   name=it.name)`. `below` is the menu entry that it belongs to; `rendering.py` has the menu, and the tabs of
   a topic and a group. The template has the name of the path.
4. Raise `BadCall` for an invalid request, with a status and a text that says what is valid.

How to add an action
1. Write a coroutine `act(visit: Visit) -> Shown | Done`, and register it as an `Action`: POST, with a form or
   a JSON object. `visit.body` has the fields; form fields are texts. Actions are rejected unless
   `kafka.compat.http.page.write.enable` is true: then `visit.may_write` is true, and so is `writes` in
   templates, which show the form only then.
2. Include `{{ form_token() }}` in the form: a hidden field without which the request is rejected.
3. Return `Done` to redirect a browser to a page, and give programs its data; return `Shown` to render a
   template (a dry run).

Authorization
The page is a client of the brokers, with the principal of `kafka.compat.http.page.principal` and the address
of the browser. `await visit.ask(key, **fields)` sends a request of Kafka's protocol to a broker of this
process, which handles and authorizes it as a client's request: use it for every change, and if possible for
queries. `ask(key, version, broker_id, …)` sends it to another broker: if that is in another process (see
`visit.is_here`), the request comes from this broker, with its rights, so check `visit.rights` first. A view
that reads the brokers' state by `visit.cluster` must check `visit.rights.may_see_topic(name)` or
`may(operation, type, name)` for everything that it shows, and omit what is not allowed; or call
`visit.rights.require(…)`, which raises the error.
"""
